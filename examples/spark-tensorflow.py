"""Trains one Keras model on images of MNIST's kind within Spark's executors, in step; knows nothing of Souk.

    spark-submit spark-tensorflow.py FOLDER WORKERS EPOCHS

The folder has MNIST's four files, on every machine. Spark's barrier mode starts all workers together and tells each where the
others are; that is all that TensorFlow's MultiWorkerMirroredStrategy needs.
"""
import os
import sys

from pyspark.sql import SparkSession

PORT, BATCH = 2300, 100


def images(folder, kind):
    import gzip

    import numpy

    def read(name, header):
        with gzip.open(f"{folder}/{kind}-{name}-ubyte.gz") as file:
            return numpy.frombuffer(file.read(), numpy.uint8, offset=header)

    return read("images-idx3", 16).reshape(-1, 784).astype("float32") / 255, read("labels-idx1", 8).astype("int32")


def train(folder, epochs):
    import json

    from pyspark import BarrierTaskContext

    context = BarrierTaskContext.get()
    index, tasks = context.partitionId(), context.getTaskInfos()
    workers = [f"{task.address.split(':')[0]}:{PORT + number}" for number, task in enumerate(tasks)]
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}})
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    tf.keras.utils.set_random_seed(1)
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Input((784,)), tf.keras.layers.Dense(128, activation="relu"),
                                     tf.keras.layers.Dense(10)])
        model.compile(optimizer=tf.keras.optimizers.SGD(0.1, momentum=0.9), metrics=["accuracy"],
                      loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    pixels, digits = images(folder, "train")
    steps = len(digits) // (len(workers) * BATCH)
    own = tf.data.Dataset.from_tensor_slices((pixels[index::len(workers)], digits[index::len(workers)]))
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF  # each has its own
    batches = own.shuffle(10000, seed=index).repeat().batch(BATCH * len(workers)).with_options(options)

    class Tell(tf.keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs):
            print(f"worker {index} of {len(workers)}: epoch {epoch + 1}, loss {logs['loss']:.4f}", flush=True)

    model.fit(batches, steps_per_epoch=steps, epochs=epochs, verbose=0, callbacks=[Tell()])
    pixels, digits = images(folder, "t10k")
    logits = tf.matmul(tf.nn.relu(tf.matmul(pixels, model.get_weights()[0]) + model.get_weights()[1]),
                       model.get_weights()[2]) + model.get_weights()[3]
    accuracy = float(tf.reduce_mean(tf.cast(tf.argmax(logits, 1, tf.int32) == digits, tf.float32)))
    weights = sum(float(tf.reduce_sum(tf.square(weight))) for weight in model.get_weights()) ** 0.5
    yield index, workers[index], accuracy, f"{weights:.4f}"


if __name__ == "__main__":
    folder, count, epochs = os.path.abspath(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    context = SparkSession.builder.appName("tensorflow").getOrCreate().sparkContext
    ready = context.parallelize(range(count), count).barrier().mapPartitions(lambda _: train(folder, epochs))
    for index, address, accuracy, weights in ready.collect():
        print(f"worker {index} at {address}: accuracy {accuracy:.4f}, weights {weights}", flush=True)
    context.stop()
