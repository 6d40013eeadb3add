/*
 * Catalogue shelf: the catalogue of a path, kept in memory and read again only when its file is
 * another. Any thread.
 */
#pragma once

#include "cloud/catalogue.h"

struct catalogue_shelf;

/* Reads nothing yet. */
struct catalogue_shelf *catalogue_shelf_new(const char *path);
void catalogue_shelf_free(struct catalogue_shelf *shelf); /* NULL is fine */
DEFINE_AUTO(catalogue_shelf);

/* As catalogue_open. It is shared, and stays as it is until catalogue_free, whatever becomes of the
 * file and of the shelf. */
MUST_CHECK int catalogue_shelf_take(struct catalogue_shelf *shelf, struct catalogue **out_catalogue,
                                    struct error *error);
