"""Scripts whose ranks meet one another before they go on."""
# A torchrun script starts with this: all ranks meet at the master, which sends every rank's word to all.
MEET = """
import json, os, signal, socket, sys, time
env = os.environ

def dial(address):
    while True:
        try:
            return socket.create_connection(address, timeout=60)  # clock: a hung rank in a sandbox
        except OSError:
            time.sleep(0.05)  # clock: retry interval until the master listens

def say(*words):
    # Write in one piece: the processes of a rank share its log.
    os.write(1, (" ".join(words) + "\\n").encode())

# No rank goes on before all have printed their line.
def meet(master, is_first, size, word, *more):
    if is_first:
        server = socket.create_server(master)
        words, files = [word], []
        while len(files) < size - 1:
            files.append(server.accept()[0].makefile("rw"))
        words += [file.readline().strip() for file in files]
        for file in files:
            print(json.dumps(sorted(words)), file=file, flush=True)
        say("met", *sorted(words), *more)
        assert all(file.readline() == "said\\n" for file in files)
        for file in files:
            print("go on", file=file, flush=True)
        return
    file = dial(master).makefile("rw")
    print(word, file=file, flush=True)
    say("met", *json.loads(file.readline()), *more)
    print("said", file=file, flush=True)
    assert file.readline() == "go on\\n"
"""

TORCH = MEET + """
rank, size = int(env["RANK"]), int(env["WORLD_SIZE"])
assert env["GROUP_RANK"] == env["ROLE_RANK"] == env["RANK"] and env["LOCAL_RANK"] == "0", env
assert env["OMP_NUM_THREADS"] == "1" and env["GLOO_SOCKET_IFNAME"] in [name for _, name in socket.if_nameindex()], env
meet((env["MASTER_ADDR"], int(env["MASTER_PORT"])), rank == 0, size, "%d@%s" % (rank, env["SOUK_ADDRESS"]),
     "restart", env["TORCHELASTIC_RESTART_COUNT"])
"""
