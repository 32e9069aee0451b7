import type { IncomingMessage } from 'node:http'

export interface RawBodyOptions<Fault> {
  readonly limit: number
  /** Told of every part that comes in, and with a minus of all of them when reading fails. */
  hold(bytes: number): void
  /** Asked after every part: why no more may come. */
  refusal(): Fault | undefined
}

/** Reads a body as it is, whatever its headers say it is. A body that cannot be had is an answer, not an exception. */
export function readRawBody<Fault>(
  request: IncomingMessage,
  { limit, hold, refusal }: RawBodyOptions<Fault>,
): Promise<Buffer | Fault | 'too_large' | 'broken_off'> {
  if (Number(request.headers['content-length'] ?? 0) > limit) return Promise.resolve('too_large')
  return new Promise((resolve) => {
    const parts: Buffer[] = []
    let length = 0

    function onData(part: Buffer): void {
      parts.push(part)
      length += part.length
      hold(part.length)
      const fault = length > limit ? 'too_large' : refusal()
      if (fault !== undefined) giveUp(fault)
    }
    function onEnd(): void {
      forget()
      const [only] = parts
      resolve(parts.length === 1 && only !== undefined ? only : Buffer.concat(parts, length))
    }
    function onClose(): void {
      giveUp('broken_off')
    }
    function giveUp(fault: Fault | 'too_large' | 'broken_off'): void {
      forget()
      hold(-length)
      resolve(fault)
    }
    function forget(): void {
      request.off('data', onData).off('end', onEnd).off('error', onClose).off('close', onClose)
    }

    request.on('data', onData).on('end', onEnd).on('error', onClose).on('close', onClose)
  })
}
