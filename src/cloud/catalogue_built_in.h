/*
 * Catalogue, built in: the file catalogue.csv as part of the program.
 */
#pragma once

#include "base/text.h"

struct text catalogue_built_in_text(void);
