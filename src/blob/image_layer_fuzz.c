/* Any bytes may come as a layer: nothing is made or removed but below the root. */
#include "base/assert.h"
#include "blob/image_layer.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error;
    struct image_room room = {1 << 20, 200};
    char place[] = "/dev/shm/souk-layer-XXXXXX";
    ASSERT(mkdtemp(place));
    /* A folder beside the root, which no layer may touch. */
    const int place_fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT(place_fd >= 0 && mkdirat(place_fd, "beside", 0700) == 0);
    ASSERT(mkdirat(place_fd, "root", 0700) == 0);
    const int root_fd = openat(place_fd, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int fd = memfd_create("layer", MFD_CLOEXEC);
    ASSERT(root_fd >= 0 && fd >= 0 && write(fd, data, size) == (ssize_t)size);
    const int result = image_layer_apply(fd, root_fd, &room, &error);
    ASSERT(result == 0 || error.message[0]);
    ASSERT(room.bytes_left <= 1 << 20 && room.files_left <= 200);
    close(fd);
    close(root_fd);
    ASSERT(image_remove(place_fd, "root", &error) == 0);
    ASSERT(unlinkat(place_fd, "beside", AT_REMOVEDIR) == 0);
    close(place_fd);
    ASSERT(rmdir(place) == 0); /* so nothing else is there */
    return 0;
}
