/* Included by force into every file: names of functions that cannot be used safely. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BANNED(name) name##_is_banned_see_base_banned_h

#undef strcpy
#define strcpy BANNED(strcpy)
#undef strcat
#define strcat BANNED(strcat)
#undef strncpy
#define strncpy BANNED(strncpy)
#undef strncat
#define strncat BANNED(strncat)
#undef sprintf
#define sprintf BANNED(sprintf)
#undef vsprintf
#define vsprintf BANNED(vsprintf)
#undef strtok
#define strtok BANNED(strtok)
#undef gets
#define gets BANNED(gets)
#undef atoi
#define atoi BANNED(atoi)
#undef atol
#define atol BANNED(atol)
#undef atof
#define atof BANNED(atof)
