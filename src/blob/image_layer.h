/*
 * Image layer: applies one layer of an OCI image, a tar file as it is or compressed by gzip or
 * zstd, to a folder that becomes the image's root.
 *
 * A layer is a stranger's. Names are taken below the root, links in them as if the root were "/",
 * so nothing outside is ever written, linked or removed; devices, pipes and sockets are left out;
 * of the mode only the permissions stay, and the owner may always read and write. Whiteouts
 * (.wh.NAME, .wh..wh..opq) remove what layers below brought.
 */
#pragma once

#include "base/error.h"

#include <stdint.h>

/* Shared by all layers of an image. */
struct image_room {
    uint64_t bytes_left; /* of all files together, unpacked */
    uint64_t files_left; /* folders and links counted; also what is removed again */
};

/* From the beginning of the file behind `fd`. CORRUPT for what is no layer or names a place
 * outside, EXHAUSTED when the room is used up; a part may be there then. */
MUST_CHECK int image_layer_apply(int fd, int root_fd, struct image_room *room, struct error *error);

/* Removes the entry and, of a folder, all in it; links are not followed. None there is fine. */
MUST_CHECK int image_remove(int folder_fd, const char *name, struct error *error);
