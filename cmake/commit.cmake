# Writes OUT, a header that names the commit of SOURCE; empty where that is no checkout of its own. Run by every build:
#
#     cmake -DSOURCE=FOLDER -DOUT=commit.h -P commit.cmake
set(commit "")
execute_process(COMMAND git rev-parse --show-toplevel WORKING_DIRECTORY ${SOURCE}
    OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE result)
file(REAL_PATH ${SOURCE} source)
if(result EQUAL 0 AND top STREQUAL source)
    execute_process(COMMAND git describe --always --dirty=-changed --exclude=* --abbrev=12 WORKING_DIRECTORY ${SOURCE}
        OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
set(text "#define SOUK_COMMIT \"${commit}\"\n")
set(before "")
if(EXISTS ${OUT})
    file(READ ${OUT} before)
endif()
if(NOT text STREQUAL before)
    file(WRITE ${OUT} "${text}")
endif()
