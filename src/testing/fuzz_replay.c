/* Replays files through a fuzz target: every file of every folder named on the command line. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return -1;
    }
    static uint8_t data[1 << 20];
    const size_t size = fread(data, 1, sizeof(data), file);
    fclose(file);
    /* A heap copy of the exact size, so that the sanitizer sees a read past the end. */
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        abort();
    for (size_t i = 0; i < size; i++)
        copy[i] = data[i];
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    return 0;
}

int main(int argc, char **argv)
{
    int replayed = 0;
    for (int i = 1; i < argc; i++) {
        struct dirent **names = NULL;
        const int count = scandir(argv[i], &names, NULL, alphasort);
        if (count < 0) {
            perror(argv[i]);
            return 1;
        }
        for (int k = 0; k < count; k++) {
            char path[4096];
            const int length = snprintf(path, sizeof(path), "%s/%s", argv[i], names[k]->d_name);
            if (names[k]->d_name[0] != '.' && length < (int)sizeof(path)) {
                if (replay_file(path) < 0)
                    return 1;
                replayed++;
            }
            free(names[k]);
        }
        free(names);
    }
    printf("%d inputs replayed\n", replayed);
    return replayed > 0 ? 0 : 1;
}
