n = TypeVar("n")
@I.ir_module
class Module:
    I.module_attrs({"a": 1, "b": "x", "c": [1, 2.5, None, True]})
    ext = R.ExternFunc("ext")
    @T.prim_func(private=True)
    def f(a: T.handle, b: T.handle, m: T.int64, C: T.Buffer((16, 16), "float16")):
        T.func_attr({"tir.noalias": T.bool(True), "op_pattern": 8})
        k = T.int64()
        A = T.match_buffer(a, (k, T.int64(4)), "float32", strides=("s", 1), elem_offset=T.int64(0), scope="local")
        B = T.match_buffer(b, (n, m), "int32")
        D = T.alloc_buffer((16,), "float16", scope="shared")
        for i, j in T.grid(k, T.int64(4)):
            with T.block("b"):
                vi, vj = T.axis.remap("SR", [i, j])
                vk = T.axis.scan((1, 8), i + 1)
                T.where(i < n)
                T.reads(A[vi, vj], B[0:n, vj])
                T.writes(A[vi, 0:4])
                T.block_attr({"x": 1, "y": {"z": "w"}})
                with T.init():
                    A[vi, vj] = T.float32(0)
                A[vi, vj] = A[vi, vj] * T.float32(2.5) + T.Cast("float32", vi // 2 % 3) - T.max(A[vi, vj], T.float32("-inf"))
        for t in T.thread_binding(4, thread="threadIdx.x", annotations={"p": 1}):
            C[0, 0:8:2] = T.Broadcast(T.float16(1), 4)
            C[1, 0:4] = C[1, 4:8]
            while B[0, 0] < 10 and not (B[0, 1] == 2) or B[0, 3] > 2:
                B[0, 0] += B[0, 0] << 1 | 2 & ~B[0, 1] ^ 3
            assert B[0, 0] < 3, "oops\t\x41"
            with T.LetStmt(B[0, 0]) as q:
                T.evaluate(T.call_extern("int32", "foo", q, "abc"))
            y: T.let[T.float32] = T.exp(T.Cast("float32", m))
            z = T.Select(y < T.float32(1), T.if_then_else(y > T.float32(2), 3, 4), T.Let(u + 1, where={u: 5}))
            if z == 3:
                T.tvm_storage_sync("shared")
            elif z == 4:
                pass
            else:
                T.evaluate(T.truncdiv(z, 2) + T.min(z, T.ceildiv(z, 3)))
    @R.function(pure=False)
    def main(x: R.Tensor(("n", "n * 2"), "float32"), c: R.Tensor((), "bool"), t: R.Tuple(R.Tensor, R.Object), f: R.Callable((R.Tensor,), R.Tensor, True), s: R.Shape(["n", 4]), p: R.Prim(value="q")) -> R.Object:
        R.func_attr({"num_input": 1})
        q, d = T.int64(), T.int64()
        cls = Module
        with R.dataflow():
            lv = R.call_tir(cls.ext, (x,), out_sinfo=[R.Tensor((n, 4), "float32"), R.Tensor((n,), "float32")], tir_vars=R.shape([n + 1]))
            lv1: R.Tensor((n, 4), dtype="float32") = lv[0]
            lv2 = R.nn.relu(lv1 @ R.permute_dims(lv1, axes=[1, 0])) + R.const([[1.5]], "float32")
            lv3 = R.call_dps_packed("ext", (lv2, R.prim_value(3)), out_ty=R.Tensor((n,), "float32"))
            gv = lv3
            R.output(gv, lv2)
        if c:
            w = R.add(gv, gv)
            o = R.nn.relu(w)
        else:
            o = -gv
        @R.function
        def inner(y: R.Tensor(("z", 2), "float32")):
            return R.add(y, y)
        v = R.match_cast(x, R.Tensor((d, n), "float32"))
        r = R.call_packed("foo", (o, v), R.str("a"), R.dtype("float32"), R.shape([1, d]), R.tuple(), sinfo_args=(R.Tensor((1, n), "float32"), R.Object))
        R.call_packed("bar", f(x), cls.main(x, c, t, f, s, p), ty_args=R.Tuple)
        return (r, (inner(x),))
