import { pipeline, type Readable, type Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { RemotePodError } from './remote-pod-error.js'

/** Requests accept only `identity`, but some servers compress nevertheless. */
const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}

/** Reads a body to its end. The limit applies to the received bytes and to the decompressed ones. */
export async function readBody(body: Readable, encoding: string, maxBytes: number): Promise<Buffer> {
  body.on('error', () => {}) // the reader of the stream gets the error
  try {
    const chunks: Buffer[] = []
    for await (const chunk of limitBytes(decompress(body, encoding, maxBytes), maxBytes)) chunks.push(chunk)
    return Buffer.concat(chunks)
  } finally {
    body.destroy() // an unread rest would block the connection
  }
}

function decompress(body: Readable, encoding: string, maxBytes: number): AsyncIterable<Buffer> {
  if (encoding === '' || encoding === 'identity') return body
  const decoder = DECODERS[encoding]?.()
  if (decoder === undefined) {
    throw new RemotePodError('bad_answer', 'The answer has a content encoding that was not requested.')
  }
  // An error on either side ends the other one, and the reader of the decoder gets it.
  return pipeline(limitBytes(body, maxBytes), decoder, () => {})
}

async function* limitBytes(chunks: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<Buffer> {
  let bytes = 0
  for await (const chunk of chunks) {
    bytes += chunk.length
    if (bytes > maxBytes) throw new RemotePodError('answer_too_large', `The answer is larger than ${maxBytes} bytes.`)
    yield chunk
  }
}
