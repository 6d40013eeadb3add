/*
 * Demo job: examples/fashion-mnist.yaml, as part of the program.
 */
#pragma once

#include "base/text.h"

struct text demo_job_text(void);
