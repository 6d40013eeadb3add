/* Passes a number around all ranks, each adding one, as often as told; prints what came back. The rank that RING_DIES
 * names is killed in lap 3, once: it leaves a folder that says so. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, size, number = 0;
    const int laps = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *dies = getenv("RING_DIES");
    const int dying = dies ? (int)strtol(dies, NULL, 10) : -1;
    for (int lap = 0; lap < laps; lap++) {
        if (lap == 3 && rank == dying && mkdir("died", 0755) == 0)
            raise(SIGKILL);
        if (rank > 0)
            MPI_Recv(&number, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        number++;
        MPI_Send(&number, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
        if (rank == 0)
            MPI_Recv(&number, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 0 && lap % 10 == 0) {
            printf("lap %d\n", lap);
            fflush(stdout);
        }
        if (laps > 1 && rank == 0)
            usleep(50000); /* clock: one lap's work, so that a rank is lost midway */
    }
    if (rank == 0)
        printf("%d ranks counted %d\n", size, number);
    MPI_Finalize();
    return 0;
}
