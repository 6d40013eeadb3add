"""Trains one small model on all workers in step, by tf.distribute.MultiWorkerMirroredStrategy; knows nothing of Souk.

Each worker draws its own points of one function; the gradients are averaged over all of them.
"""
import json
import os

import tensorflow as tf

STEPS = int(os.environ.get("STEPS", 60))
task = json.loads(os.environ["TF_CONFIG"])["task"]

strategy = tf.distribute.MultiWorkerMirroredStrategy()
tf.keras.utils.set_random_seed(1)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Input((8,)), tf.keras.layers.Dense(64, activation="tanh"),
                                 tf.keras.layers.Dense(1)])
    model.compile(optimizer=tf.keras.optimizers.SGD(0.05, momentum=0.9), loss="mse")

points = tf.random.stateless_normal((32 * STEPS, 8), seed=(100, task["index"]))
batches = tf.data.Dataset.from_tensor_slices((points, tf.sin(tf.reduce_sum(points, 1, keepdims=True)))).batch(32)
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF  # each has its own
history = model.fit(batches.with_options(options).repeat(), steps_per_epoch=STEPS // 4, epochs=4, verbose=0)
losses = history.history["loss"]

weights = sum(float(tf.reduce_sum(tf.square(weight))) for weight in model.get_weights()) ** 0.5
print(f"worker {task['index']} of {strategy.num_replicas_in_sync}: loss {losses[0]:.4f} to {losses[-1]:.4f}, "
      f"weights {weights:.5f}", flush=True)
