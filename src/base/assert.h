/*
 * Assertions for our own mistakes, never for input. ASSERT stays in release builds.
 */
#pragma once

_Noreturn void assert_failed(const char *condition, const char *file, int line,
                             const char *function);

#define ASSERT(condition)                                                                          \
    ((condition) ? (void)0 : assert_failed(#condition, __FILE__, __LINE__, __func__))

/* Where control cannot come: after a switch that returns in every case. */
#define UNREACHABLE(why) assert_failed(why, __FILE__, __LINE__, __func__)

/* For inner loops: only in debug builds. */
#ifdef NDEBUG
#define DEBUG_ASSERT(condition) ((void)0)
#else
#define DEBUG_ASSERT(condition) ASSERT(condition)
#endif
