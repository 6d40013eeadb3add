// Unpacks, but no further than `bytesMax`: what unpacks to more than was promised is not followed.
export async function inflated(packed: Blob, format: CompressionFormat, bytesMax: number): Promise<Blob | null> {
  const reader = packed.stream().pipeThrough(new DecompressionStream(format)).getReader();
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let far = 0;
  for (let step = await reader.read(); !step.done; step = await reader.read()) {
    pieces.push(step.value as Uint8Array<ArrayBuffer>);
    if ((far += step.value.length) > bytesMax) {
      await reader.cancel();
      return null;
    }
  }
  return new Blob(pieces);
}
