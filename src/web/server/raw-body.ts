import type { IncomingMessage } from 'node:http'

export interface RawBodyOptions<Fault> {
  readonly limit: number
  /** Called with the length of each chunk, and with the negative total if reading fails. */
  hold(bytes: number): void
  /** Called after each chunk: a reason to stop reading. */
  refusal(): Fault | undefined
}

/** Reads a body regardless of its declared type. A body that cannot be read resolves to the reason instead of throwing. */
export function readRawBody<Fault>(
  request: IncomingMessage,
  { limit, hold, refusal }: RawBodyOptions<Fault>,
): Promise<Buffer | Fault | 'too_large' | 'broken_off'> {
  if (Number(request.headers['content-length'] ?? 0) > limit) return Promise.resolve('too_large')
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let length = 0

    function onData(chunk: Buffer): void {
      chunks.push(chunk)
      length += chunk.length
      hold(chunk.length)
      const fault = length > limit ? 'too_large' : refusal()
      if (fault !== undefined) stop(fault)
    }
    function onEnd(): void {
      removeListeners()
      const [only] = chunks
      resolve(chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks, length))
    }
    function onClose(): void {
      stop('broken_off')
    }
    function stop(fault: Fault | 'too_large' | 'broken_off'): void {
      removeListeners()
      hold(-length)
      resolve(fault)
    }
    function removeListeners(): void {
      request.off('data', onData).off('end', onEnd).off('error', onClose).off('close', onClose)
    }

    request.on('data', onData).on('end', onEnd).on('error', onClose).on('close', onClose)
  })
}
