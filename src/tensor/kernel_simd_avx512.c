/* Compiled with this instruction set's flags; nothing here may run before kernel_simd.c has asked
 * the processor. */
#define LANES     16
#define REGISTERS 32
#define ISA       simd_isa_avx512
#define ISA_NAME  "avx512"
#include "tensor/kernel_simd_isa.h"
