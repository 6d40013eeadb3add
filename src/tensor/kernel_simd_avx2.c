/* Compiled with this instruction set's flags; nothing here may run before kernel_simd.c has asked
 * the processor. */
#define LANES     8
#define REGISTERS 16
#define ISA       simd_isa_avx2
#define ISA_NAME  "avx2"
#include "tensor/kernel_simd_isa.h"
