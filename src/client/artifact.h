/*
 * Artifact: a file that a job left, brought into a folder here.
 */
#pragma once

#include "base/arena.h"
#include "client/api.h"
#include "client/client.h"

/* It is there whole or not at all, with the folders of its name; its path is in the arena. CORRUPT
 * for a name that is none of a file, and for a file of another size than the market said. No link
 * below the folder is followed. */
MUST_CHECK int artifact_fetch(struct arena *arena, struct client *client, uint64_t job,
                              const struct api_artifact *artifact, const char *folder,
                              const char **out_path, struct error *error);
/* Its bytes, checked as above. */
MUST_CHECK int artifact_download(struct arena *arena, struct client *client, uint64_t job,
                                 const struct api_artifact *artifact, int fd, struct error *error);
