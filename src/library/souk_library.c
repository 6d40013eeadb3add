#include "base/error.h"

#include <souk/library.h>
#include <stdlib.h>

#define AS_STRING(x) #x
#define STRING(x)    AS_STRING(x)

_Static_assert(SOUK_INVALID == (int)ERROR_INVALID && SOUK_CORRUPT == (int)ERROR_CORRUPT &&
                   SOUK_STOPPED == (int)ERROR_CODE_COUNT,
               "the library's codes are the program's, and those of its own after them");

const char *souk_error_code_name(int32_t code)
{
    if (code == SOUK_STOPPED)
        return "stopped";
    if (code == SOUK_TIMED_OUT)
        return "timed_out";
    return code >= 0 && code < (int32_t)ERROR_CODE_COUNT ? error_code_name((enum error_code)code)
                                                         : "unknown";
}

const char *souk_library_version(void)
{
    return STRING(SOUK_VERSION);
}

uint32_t souk_library_abi(void)
{
    return SOUK_ABI_VERSION;
}

void souk_text_free(char *text)
{
    free(text);
}
