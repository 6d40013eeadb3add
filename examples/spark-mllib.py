"""Learns who earns more (the a9a data) by MLlib's logistic regression, under several penalties; knows nothing of Souk.

    spark-submit spark-mllib.py a9a a9a.t      LIBSVM files, plain or .gz, that lie beside it on every machine
"""
import os
import sys

from pyspark.ml.classification import LogisticRegression
from pyspark.ml.evaluation import MulticlassClassificationEvaluator
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

FEATURES = 123
spark = SparkSession.builder.appName("mllib").getOrCreate()


def rows_of(path):
    rows = spark.read.format("libsvm").option("numFeatures", FEATURES).load(f"file://{os.path.abspath(path)}")
    return rows.withColumn("label", (col("label") > 0).cast("double"))


train = rows_of(sys.argv[1]).repartition(6).cache()
test = rows_of(sys.argv[2])
told_right = MulticlassClassificationEvaluator(metricName="accuracy")
print("rows", train.count(), test.count(), flush=True)
for penalty in (0.1, 0.03, 0.01, 0.003, 0.001, 0.0):
    model = LogisticRegression(maxIter=60, regParam=penalty).fit(train)
    accuracy = told_right.evaluate(model.transform(test))
    print(f"penalty {penalty}: {model.summary.totalIterations} steps, loss {model.summary.objectiveHistory[-1]:.4f}, "
          f"accuracy {accuracy:.4f}", flush=True)
spark.stop()
