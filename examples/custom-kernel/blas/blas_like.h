/* A library in the manner of CBLAS. */
#ifndef BLAS_LIKE_H
#define BLAS_LIKE_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum BLAS_ORDER { BlasRowMajor = 101, BlasColMajor = 102 } BLAS_ORDER;

/* y = alpha A x, for the m by n matrix A whose rows (columns) are lda elements apart. Gives 0, or the number of the
 * parameter that is not valid. */
int blas_sgemv(BLAS_ORDER order, int m, int n, float alpha, const float *a, int lda, const float *x, float *y);

#ifdef __cplusplus
}
#endif

#endif
