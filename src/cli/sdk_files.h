/*
 * SDK files: the Python package and libsouk, as part of the program (tools/embed_sdk.py).
 */
#pragma once

#include "peer/sdk.h"

extern const struct sdk sdk_files;
