"""Trains one small model whose weights lie at parameter servers, by tf.distribute.ParameterServerStrategy.

Workers and parameter servers serve; the chief tells them what to do, and goes on when a worker is away for a while.
"""
import os

import tensorflow as tf

STEPS = int(os.environ.get("STEPS", 200))
cluster = tf.distribute.cluster_resolver.TFConfigClusterResolver()

if cluster.task_type in ("worker", "ps"):
    server = tf.distribute.Server(cluster.cluster_spec(), job_name=cluster.task_type, task_index=cluster.task_id,
                                  protocol=cluster.rpc_layer or "grpc")
    print(f"{cluster.task_type} {cluster.task_id} serves", flush=True)
    server.join()

strategy = tf.distribute.ParameterServerStrategy(cluster)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
tf.keras.utils.set_random_seed(1)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Input((8,)), tf.keras.layers.Dense(64, activation="tanh"),
                                 tf.keras.layers.Dense(1)])
    optimizer = tf.keras.optimizers.SGD(0.05)
    optimizer.build(model.trainable_variables)


def batches():
    points = tf.random.stateless_normal((3200, 8), seed=(100, 1))
    return tf.data.Dataset.from_tensor_slices((points, tf.sin(tf.reduce_sum(points, 1, keepdims=True)))).batch(32).repeat()


@tf.function
def step(iterator):
    def of_one_replica(points, values):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(points) - values))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss
    return strategy.run(of_one_replica, args=next(iterator))


iterator = iter(coordinator.create_per_worker_dataset(batches))
losses = []
for first in range(0, STEPS, 20):
    results = [coordinator.schedule(step, args=(iterator,)) for _ in range(20)]
    coordinator.join()
    losses.append(sum(float(result.fetch()) for result in results) / len(results))
    print(f"step {first + 20}: loss {losses[-1]:.4f}", flush=True)
print(f"chief: loss {losses[0]:.4f} to {losses[-1]:.4f} by {int(optimizer.iterations.numpy())} steps", flush=True)
