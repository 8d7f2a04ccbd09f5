/* C ABI between generated kernels and tvm-runtime. Freestanding: needs stdint.h and stddef.h only. */
#ifndef TVM_RUNTIME_H
#define TVM_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

/* Type codes of a tensor's elements: those of DLPack. */
enum {
  TVM_CODE_INT = 0,
  TVM_CODE_UINT = 1,
  TVM_CODE_FLOAT = 2,
  TVM_CODE_HANDLE = 3,
  TVM_CODE_BFLOAT = 4,
  TVM_CODE_BOOL = 6
};

/* Alignment in bytes of the arena, of weights and of the workspace. Tensors handed in by a
 * caller (parameters and outputs of an entry function) have the alignment of their element only. */
#define TVM_ALIGN 64

typedef struct tvm_context tvm_context;

/* One task of a parallel loop: 0, or a message number as a kernel returns it. */
typedef int32_t (*tvm_task)(int64_t task, void *data);

/* Runs body(0, data) … body(tasks - 1, data) in any order, on any threads, and returns when all
 * have returned: 0, or the result of one that was not 0. */
typedef int32_t (*tvm_parallel_for)(void *opaque, int64_t tasks, tvm_task body, void *data);

struct tvm_context {
  tvm_parallel_for parallel_for; /* null: run tasks one after the other */
  void *opaque;                  /* first argument of parallel_for */
  void *workspace;               /* scratch memory of this call, TVM_ALIGN-aligned */
  size_t workspace_bytes;
};

/* args: buffers in the order of the PrimFunc's parameters, inputs then outputs; dims: its scalar
 * parameters in order (floats as the bits of a double). Returns 0, or n for the program's n-th
 * message, counted from 1, when an assertion failed. */
typedef int32_t (*tvm_kernel)(void *const *args, const int64_t *dims, const tvm_context *ctx);

#endif
