import { pipeline, type Readable, type Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { RemotePodError } from './remote-pod-error.js'

/** We ask for `identity`, but servers that compress whatever is asked are read as well. */
const decoders: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}

/** Reads a body to its end; bytes are counted as they come and again when they are unpacked, and too many end it. */
export async function readBody(body: Readable, encoding: string, maxBytes: number): Promise<Buffer> {
  body.on('error', () => {}) // whoever reads it hears of it
  try {
    const chunks: Buffer[] = []
    for await (const chunk of counted(unpacked(body, encoding, maxBytes), maxBytes)) chunks.push(chunk)
    return Buffer.concat(chunks)
  } finally {
    body.destroy() // what is not read to its end would hold the connection
  }
}

function unpacked(body: Readable, encoding: string, maxBytes: number): AsyncIterable<Buffer> {
  if (encoding === '' || encoding === 'identity') return body
  const decoder = decoders[encoding]?.()
  if (decoder === undefined) {
    throw new RemotePodError('bad_answer', 'The answer is encoded in a way that nobody asked for.')
  }
  // An error of either side ends the other, and whoever reads the decoder hears of it.
  return pipeline(counted(body, maxBytes), decoder, () => {})
}

async function* counted(chunks: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<Buffer> {
  let bytes = 0
  for await (const chunk of chunks) {
    bytes += chunk.length
    if (bytes > maxBytes) throw new RemotePodError('answer_too_large', `The answer is larger than ${maxBytes} bytes.`)
    yield chunk
  }
}
