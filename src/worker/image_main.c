/* Inside a sandbox of its own: unpacks a borrower's image into the working folder. */
#include "base/scope.h"
#include "base/text.h"
#include "blob/image.h"
#include "worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int image_unpack_main(int argc, char **argv)
{
    struct error error;
    struct image_limits limits;
    struct image_summary summary;
    if (argc != 4 || text_parse_u64(text_of(argv[2]), &limits.bytes_max, &error) < 0 ||
        text_parse_u64(text_of(argv[3]), &limits.files_max, &error) < 0 || sodium_init() < 0) {
        puts("not for people: the lender's daemon starts it");
        return 2;
    }
    AUTO_FD int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        printf("%s: %s\n", argv[1], strerrordesc_np(errno));
        return 1;
    }
    if (image_unpack(fd, &limits, &summary, &error) < 0) {
        puts(error.message);
        return 1;
    }
    return 0;
}
