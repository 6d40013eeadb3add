/*
 * Loader: how a program of this machine runs where none of the machine's folders are: by its own
 * dynamic loader and from its own libraries, which are shown beside it.
 *
 * An image brings its own C library or none, and /souk has to run in it all the same.
 */
#pragma once

#include <stddef.h>

enum { LOADER_FOLDERS_MAX = 4, LOADER_PATH_SIZE = 256 };

#define LOADER_INSIDE "/.souk/lib" /* and the folder's number */

/* Plain data without pointers. */
struct loader {
    char folders[LOADER_FOLDERS_MAX][LOADER_PATH_SIZE]; /* of libraries, on this machine */
    size_t folder_count;
    char path[LOADER_PATH_SIZE];      /* of the loader, inside; empty: programs need none */
    char libraries[LOADER_PATH_SIZE]; /* where it looks, inside: "/.souk/lib0:/.souk/lib1" */
};

/* From this process: the folders its libraries and its loader lie in. -1 with errno when they are
 * in more folders than fit, or cannot be found. */
int loader_find(struct loader *out_loader);
