#include "blas_like.h"

int blas_sgemv(BLAS_ORDER order, int m, int n, float alpha, const float *a, int lda, const float *x, float *y) {
  const int by_rows = order == BlasRowMajor;
  if (!by_rows && order != BlasColMajor) return 1;
  if (m < 0) return 2;
  if (n < 0) return 3;
  if (lda < (by_rows ? n : m)) return 6;
  for (int i = 0; i < m; ++i) {
    float sum = 0;
    for (int j = 0; j < n; ++j) sum += (by_rows ? a[(long)i * lda + j] : a[(long)j * lda + i]) * x[j];
    y[i] = alpha * sum;
  }
  return 0;
}
