# What has not ended by then hangs, however busy the machine: a unit test, and one of many cases; under an emulator far longer.
set(test_timeout_s 180)
set(long_test_timeout_s 300)
if(CMAKE_CROSSCOMPILING)
    set(test_timeout_s 1800)
    set(long_test_timeout_s 7200)
endif()

# Hundreds of tests are linked, from the same archives: gold takes a third of the time.
set(test_linker)
find_program(GOLD ld.gold)
if(GOLD AND NOT CMAKE_CROSSCOMPILING)
    set(test_linker -fuse-ld=gold)
endif()

# What is tested is built as the preset says; tests themselves need not be fast, but soon built.
set(SOUK_TEST_FLAGS "" CACHE STRING "further compiler flags of the unit tests' own files")

# add_module(name SOURCES a.c... DEPENDS lower... LIBRARIES PkgConfig::x... TESTS a_test... FUZZ b_fuzz...)
#
# One folder of src/ = one static library. DEPENDS is the layer rule; tools/check_style.py
# compares it with the #include lines. Each test is a program beside the code it tests; each
# fuzz target is one LLVMFuzzerTestOneInput, replayed over its corpus in tests/fuzz/NAME.
function(add_module name)
    cmake_parse_arguments(M "" "" "SOURCES;DEPENDS;LIBRARIES;TESTS;FUZZ" ${ARGN})
    add_library(${name} STATIC ${M_SOURCES})
    target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(${name} PUBLIC ${M_DEPENDS} ${M_LIBRARIES} PRIVATE strict)
    if(BUILD_TESTING)
        foreach(test ${M_TESTS})
            add_executable(${test} ${test}.c)
            target_link_libraries(${test} PRIVATE ${name} strict cmocka)
            target_link_options(${test} PRIVATE ${test_linker})
            target_compile_options(${test} PRIVATE ${SOUK_TEST_FLAGS})
            if(CMAKE_CROSSCOMPILING)
                target_compile_definitions(${test} PRIVATE TEST_IS_EMULATED)
            endif()
            add_test(NAME ${name}/${test} COMMAND ${test})
            # Unit tests compute, whole programs wait: each takes two of a core's four places (tools/run-tests).
            set_tests_properties(${name}/${test} PROPERTIES LABELS unit PROCESSORS 2 TIMEOUT ${test_timeout_s})
        endforeach()
        foreach(target ${M_FUZZ})
            add_fuzz_target(${name} ${target})
        endforeach()
    endif()
endfunction()

# With -DSOUK_FUZZ=ON (clang) the target is a libFuzzer program; otherwise a program that replays
# the files it is given, so that every compiler and sanitizer runs the corpus.
option(SOUK_FUZZ "build libFuzzer programs" OFF)
function(add_fuzz_target module target)
    if(SOUK_FUZZ)
        add_executable(${target} ${target}.c)
        target_compile_options(${target} PRIVATE -fsanitize=fuzzer)
        target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    else()
        add_executable(${target} ${target}.c ${PROJECT_SOURCE_DIR}/src/testing/fuzz_replay.c)
        add_test(NAME ${module}/${target}
                 COMMAND ${target} ${PROJECT_SOURCE_DIR}/tests/fuzz/${target})
        set_tests_properties(${module}/${target} PROPERTIES LABELS fuzz-replay TIMEOUT ${test_timeout_s})
    endif()
    target_link_libraries(${target} PRIVATE ${module} strict)
    target_link_options(${target} PRIVATE ${test_linker})
endfunction()
