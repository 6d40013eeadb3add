/* What every processor of the architecture has: SSE2 on x86-64, NEON on arm64. */
#define LANES 4
#ifdef __aarch64__
#define REGISTERS 32
#else
#define REGISTERS 16
#endif
#define ISA      simd_isa_base
#define ISA_NAME "base"
#include "tensor/kernel_simd_isa.h"
