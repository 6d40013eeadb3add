"""Counts the words of the job files beside it, on whatever cluster spark-submit finds."""
import pathlib

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("wordcount").getOrCreate()
lines = [line for path in sorted(pathlib.Path(".").glob("*.yaml")) for line in path.read_text().splitlines()]
counts = (spark.sparkContext.parallelize(lines, 6)
          .flatMap(str.split)
          .map(lambda word: (word, 1))
          .reduceByKey(lambda first, second: first + second)
          .collect())
for word, count in sorted(counts, key=lambda pair: (-pair[1], pair[0]))[:10]:
    print(count, word, flush=True)
spark.stop()
