/*
 * Runtime spark: a standalone cluster of Spark's of the job's own. Rank 0 runs the master and the
 * job's script, whose driver finds the cluster by itself; the other ranks run a worker each, as
 * large as their lease, and rank 0 one too where its memory has room for it. A worker that is lost
 * is missed by nobody for long: the driver gives its tasks to the others.
 *
 * One rank alone needs no cluster: the driver works in its own process.
 *
 * Docs: spark.apache.org/docs/latest/spark-standalone.html and configuration.html.
 */
#include "base/buffer.h"
#include "runtime/launch.h"
#include "runtime/ports.h"

#include <inttypes.h>

enum {
    MIB = 1 << 20,
    HEAP_LEAST_MIB = 512,    /* Spark refuses to start with less than 450 */
    DAEMON_MIB = 384,        /* a master's or worker's own process, and the system's share */
    SHARED_LEAST_MIB = 3072, /* from there rank 0 has room for an executor beside the driver */
    FILE_SIZE_MAX = 64 << 10,
};

/* Sourced: finds Spark on this machine, wherever its owner has it. */
static const char env_text[] =
    "if [ -z \"${SPARK_HOME:-}\" ]; then\n"
    "    for home in \"${VIRTUAL_ENV:-/usr/local}\"/lib*/python3*/*-packages/pyspark \\\n"
    "        /usr/local/lib/python3*/dist-packages/pyspark /usr/lib/python3/dist-packages/pyspark "
    "\\\n"
    "        /opt/spark; do\n"
    "        if [ -d \"$home/jars\" ]; then\n"
    "            SPARK_HOME=$home\n"
    "            break\n"
    "        fi\n"
    "    done\n"
    "fi\n"
    "if [ -z \"${SPARK_HOME:-}\" ]; then\n"
    "    echo 'souk: no Spark on this machine; ask for machines that have it: resources.labels' "
    ">&2\n"
    "    exit 127\n"
    "fi\n"
    "for jar in \"$SPARK_HOME\"/jars/scala-library-*.jar; do\n"
    "    SPARK_SCALA_VERSION=${jar##*/scala-library-}\n"
    "    SPARK_SCALA_VERSION=${SPARK_SCALA_VERSION%.*.jar}\n"
    "done\n"
    "SOUK_JAVA=${JAVA_HOME:+$JAVA_HOME/bin/}java\n"
    "SOUK_JAVA_HOME=${JAVA_HOME:-}\n"
    /* What the owner made by tools/spark-archive; one that does not fit is passed over. */
    "SOUK_JAVA_SHARE=-Xshare:auto\n"
    "if [ -r \"$SPARK_HOME/souk.jsa\" ]; then\n"
    "    SOUK_JAVA_SHARE=\"-XX:SharedArchiveFile=$SPARK_HOME/souk.jsa -Xlog:cds*=off\"\n"
    "fi\n"
    "SOUK_SPARK_LOG=-Dlog4j2.configurationFile=file:$SOUK_SPARK_DIR/log4j2.properties\n"
    "SPARK_SUBMIT_OPTS=$SOUK_SPARK_LOG\n"
    "SPARK_LAUNCHER_OPTS='-XX:+UseSerialGC -XX:TieredStopAtLevel=1'\n"
    "mkdir -p \"$SOUK_SPARK_DIR/jvm/bin\" \"$SPARK_LOCAL_DIRS\"\n"
    "[ -e \"$SOUK_SPARK_DIR/jvm/bin/java\" ] || ln -s ../../java \"$SOUK_SPARK_DIR/jvm/bin/java\"\n"
    "PATH=$SOUK_SPARK_DIR/bin:$PATH\n"
    "export PATH SPARK_HOME SPARK_SCALA_VERSION SPARK_SUBMIT_OPTS SPARK_LAUNCHER_OPTS SOUK_JAVA "
    "SOUK_JAVA_HOME SOUK_JAVA_SHARE SOUK_SPARK_LOG\n";

/* daemon master|worker */
static const char daemon_text[] =
    "#!/usr/bin/env bash\n"
    ". \"$SOUK_SPARK_DIR/env\"\n"
    "options=(-Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 $SOUK_JAVA_SHARE "
    "\"$SOUK_SPARK_LOG\")\n"
    "start() {\n"
    "    \"$SOUK_JAVA\" \"${options[@]}\" -cp \"$SPARK_HOME/jars/*\" \"$@\" --host "
    "\"$SPARK_LOCAL_IP\" \\\n"
    "        --webui-port 0 --properties-file \"$SOUK_SPARK_DIR/defaults.conf\"\n"
    "}\n"
    "if [ \"$1\" = master ]; then\n"
    "    start org.apache.spark.deploy.master.Master --port \"$SOUK_SPARK_MASTER_PORT\"\n"
    "    exit\n"
    "fi\n"
    "# What executors print goes to this rank's log, not to files that nobody reads.\n"
    "[ -p \"$SOUK_SPARK_DIR/said\" ] || mkfifo \"$SOUK_SPARK_DIR/said\"\n"
    "cat <>\"$SOUK_SPARK_DIR/said\" >&2 &\n"
    "while :; do\n"
    "    \"$SOUK_SPARK_DIR/await\"\n"
    "    JAVA_HOME=$SOUK_SPARK_DIR/jvm start org.apache.spark.deploy.worker.Worker \\\n"
    "        -d \"$SOUK_SPARK_DIR/work\" \"$SPARK_MASTER\" --port $((SOUK_SPARK_WORKER_PORT + "
    "RANDOM % 100))\n"
    "    echo \"souk: this rank's Spark worker ended with status $?; it starts anew\" >&2\n"
    "    sleep 1\n"
    "done\n";

/* Spark tries again only after many seconds: who needs the master waits for it first. */
static const char await_text[] =
    "#!/usr/bin/env bash\n"
    "host=${SPARK_MASTER#spark://}\n"
    "until (exec 3<>\"/dev/tcp/${host%:*}/${host#*:}\") 2>/dev/null; do sleep 0.1; done\n";

/* In place of java, for what Spark starts by itself: the driver and executors. Its folder of
 * settings on the class path, of no use here, would keep Java from taking classes out of the
 * archive. */
static const char java_text[] =
    "#!/usr/bin/env bash\n"
    "words=() before= main=\n"
    "for word in \"$@\"; do\n"
    "    [ \"$before\" = -cp ] && word=${word#\"$SPARK_CONF_DIR/:\"}\n"
    "    case $word in org.apache.spark.*) main=${main:-$word} ;; esac\n"
    "    words+=(\"$word\")\n"
    "    before=$word\n"
    "done\n"
    "options=(-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=120000)\n"
    "case $main in\n"
    "*.launcher.Main) exec \"$SOUK_JAVA\" \"$@\" ;; # which must take this for Java's home\n"
    "*.executor.*)\n"
    "    exec >\"$SOUK_SPARK_DIR/said\" 2>&1\n"
    "    options+=(\"$SOUK_SPARK_LOG\")\n"
    "    ;;\n"
    "esac\n"
    "unset JAVA_HOME\n"
    "[ -z \"$SOUK_JAVA_HOME\" ] || export JAVA_HOME=\"$SOUK_JAVA_HOME\"\n"
    "exec \"$SOUK_JAVA\" $SOUK_JAVA_SHARE \"${options[@]}\" \"${words[@]}\"\n";

/* The driver's Python, started by its Java. */
static const char python_text[] = "#!/bin/sh\n"
                                  "\"$SOUK_SPARK_DIR/await\"\n"
                                  "exec \"$SOUK_DRIVER_PYTHON\" \"$@\"\n";

static const char submit_text[] = "#!/bin/sh\n"
                                  "exec \"$SPARK_HOME/bin/spark-submit\" --properties-file "
                                  "\"$SOUK_SPARK_DIR/defaults.conf\" \"$@\"\n";

/* Read by all of Spark's own scripts, those of pyspark too. The master is waited for as late as can
 * be: by the Python that `spark-submit main.py` starts, else before there is a driver. */
static const char guard_text[] =
    "JAVA_HOME=$SOUK_SPARK_DIR/jvm\n"
    "case $SPARK_MASTER in\n"
    "spark://*)\n"
    "    case \" $* \" in\n"
    "    *' --class '* | *' --py-files '* | *spark.pyspark.*) \"$SOUK_SPARK_DIR/await\" ;;\n"
    "    *'.deploy.SparkSubmit '*'.py '*)\n"
    "        SOUK_DRIVER_PYTHON=${PYSPARK_DRIVER_PYTHON:-${PYSPARK_PYTHON:-python3}}\n"
    "        PYSPARK_DRIVER_PYTHON=$SOUK_SPARK_DIR/python\n"
    "        ;;\n"
    "    *) \"$SOUK_SPARK_DIR/await\" ;;\n"
    "    esac\n"
    "    ;;\n"
    "esac\n";

static const char log_text[] = "rootLogger.level = warn\n"
                               "rootLogger.appenderRef.console.ref = console\n"
                               "appender.console.type = Console\n"
                               "appender.console.name = console\n"
                               "appender.console.target = SYSTEM_ERR\n"
                               "appender.console.layout.type = PatternLayout\n"
                               "appender.console.layout.pattern = %p %c{1}: %m%n%ex\n"
                               /* Of no use to anybody here. */
                               "logger.native.name = org.apache.hadoop.util.NativeCodeLoader\n"
                               "logger.native.level = error\n"
                               "logger.mac.name = io.netty.util.internal.MacAddressUtil\n"
                               "logger.mac.level = error\n";

struct sizes {
    int64_t cores;
    int64_t driver_mib, executor_mib;
    bool is_alone;
    bool is_shared; /* rank 0 has an executor too */
};

static int64_t at_least(int64_t value, int64_t least)
{
    return value > least ? value : least;
}

/* All ranks of a job lease the same memory, so each knows what the others have. */
static struct sizes find_sizes(const struct launch_round *round)
{
    const int64_t ram_mib = round->ram_bytes / MIB;
    struct sizes sizes = {.cores = at_least(round->members[round->own].cores_milli / 1000, 1),
                          .is_alone = round->member_count == 1,
                          .is_shared = ram_mib >= SHARED_LEAST_MIB};
    sizes.executor_mib = at_least((ram_mib - DAEMON_MIB) / 2, HEAP_LEAST_MIB);
    sizes.driver_mib = sizes.is_shared && !sizes.is_alone ? at_least(ram_mib / 4, HEAP_LEAST_MIB)
                                                          : sizes.executor_mib;
    return sizes;
}

static void write_defaults(struct buffer *text, const struct sizes *sizes, const char *master,
                           const char *own)
{
    buffer_append_format(text, "spark.master %s\n", master);
    buffer_append_format(text, "spark.driver.host %s\n", own);
    buffer_append_format(text, "spark.driver.bindAddress %s\n", own);
    buffer_append_format(text, "spark.driver.port %d\n", PORT_SPARK_DRIVER);
    buffer_append_format(text, "spark.driver.blockManager.port %d\n", PORT_SPARK_DRIVER_BLOCKS);
    buffer_append_format(text, "spark.blockManager.port %d\n", PORT_SPARK_EXECUTOR_BLOCKS);
    buffer_append_format(text, "spark.driver.memory %" PRId64 "m\n", sizes->driver_mib);
    buffer_append_format(text, "spark.executor.memory %" PRId64 "m\n", sizes->executor_mib);
    /* A rank that is lost is noticed in less than a minute; by default it takes two. */
    buffer_append_format(text, "spark.executor.heartbeatInterval 5s\n"
                               "spark.network.timeout 40s\n"
                               "spark.network.timeoutInterval 10s\n"
                               "spark.worker.timeout 20\n"
                               /* The tasks of a barrier wait for executors that are still
                                * starting; by default they look again after 15 s. */
                               "spark.scheduler.barrier.maxConcurrentTasksCheck.interval 1s\n"
                               "spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures 600\n"
                               "spark.ui.enabled false\n"
                               "spark.ui.showConsoleProgress false\n"
                               "spark.eventLog.enabled false\n");
}

static void add_file(struct launch *out, const char *name, struct text content, bool is_program)
{
    out->files[out->file_count++] =
        (struct launch_file){.name = name, .content = content, .is_program = is_program};
}

static void write_files(struct arena *arena, struct launch *out, const struct sizes *sizes,
                        const char *master, const char *own)
{
    struct buffer text AUTO_BUFFER;
    buffer_init(&text, FILE_SIZE_MAX);
    write_defaults(&text, sizes, master, own);
    add_file(out, "defaults.conf", arena_copy_text(arena, buffer_text(&text)), false);
    add_file(out, "log4j2.properties", text_of(log_text), false);
    add_file(out, "env", text_of(env_text), false);
    add_file(out, "await", text_of(await_text), true);
    add_file(out, "daemon", text_of(daemon_text), true);
    add_file(out, "java", text_of(java_text), true);
    add_file(out, "python", text_of(python_text), true);
    add_file(out, "bin/spark-submit", text_of(submit_text), true);
    add_file(out, "conf/spark-env.sh", text_of(guard_text), false);
}

static void spark_write(struct arena *arena, const struct launch_round *round, struct launch *out)
{
    const struct sizes sizes = find_sizes(round);
    char own[LAUNCH_ADDRESS_SIZE], first[LAUNCH_ADDRESS_SIZE], master[64];
    launch_address(round->members[round->own].address, own);
    launch_address(round->members[0].address, first);
    if (sizes.is_alone)
        snprintf(master, sizeof(master), "local[%" PRId64 "]", sizes.cores);
    else
        snprintf(master, sizeof(master), "spark://%s:%d", first, PORT_SPARK_MASTER);
    launch_add(out, arena, "SPARK_MASTER=%s", master);
    launch_add(out, arena, "SPARK_LOCAL_IP=%s", own);
    launch_add(out, arena, "SPARK_PUBLIC_DNS=%s", own);
    launch_add(out, arena, "SPARK_WORKER_CORES=%" PRId64, sizes.cores);
    launch_add(out, arena, "SPARK_WORKER_MEMORY=%" PRId64 "m", sizes.executor_mib);
    launch_add(out, arena, "SPARK_LOCAL_DIRS=%s/local", round->folder); /* /tmp is memory */
    launch_add(out, arena, "SPARK_CONF_DIR=%s/conf", round->folder);
    launch_add(out, arena, "SOUK_SPARK_DIR=%s", round->folder);
    launch_add(out, arena, "SOUK_SPARK_MASTER_PORT=%d", PORT_SPARK_MASTER);
    launch_add(out, arena, "SOUK_SPARK_WORKER_PORT=%d", PORT_SPARK_WORKER);
    launch_add(out, arena, "PYSPARK_SUBMIT_ARGS=--properties-file %s/defaults.conf pyspark-shell",
               round->folder);
    write_files(arena, out, &sizes, master, own);
    if (round->own > 0) {
        out->instead = text_of(arena_format(arena, "exec %s/daemon worker", round->folder));
        return;
    }
    /* In subshells: a `wait` of the script's does not wait for them. What a worker of rank 0 does
     * never keeps the driver waiting. */
    const char *beside =
        sizes.is_shared ? "(nice -n 10 \"$SOUK_SPARK_DIR/daemon\" worker &)\n" : "";
    out->before =
        text_of(arena_format(arena, ". %s/env\n%s%s", round->folder,
                             sizes.is_alone ? "" : "(\"$SOUK_SPARK_DIR/daemon\" master &)\n",
                             sizes.is_alone ? "" : beside));
}

const struct launch_kind launch_spark = {.name = "spark",
                                         .label = "spark",
                                         .software = "Spark",
                                         .is_led = true,
                                         .goes_on = true,
                                         .write = spark_write};
