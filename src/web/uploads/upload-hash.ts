import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { finished } from 'node:stream/promises'

/** What a multipart body says, told while somebody else reads it. */
export interface UploadHash {
  /** Of what was read; undefined: that was not all of it. */
  digest(): string | undefined
  /** Where nobody else will read it; who sends more than so many bytes is cut off. */
  read(most: number): Promise<void>
}

/** Clients put another boundary between the same parts each time they send them, so that is left out. */
export function hashUpload(raw: IncomingMessage, contentType: string): UploadHash {
  const boundary = Buffer.from(/boundary="?([^";]+)/i.exec(contentType)?.[1] ?? '\r\n', 'latin1')
  const hash = createHash('sha256')
  let rest = Buffer.alloc(0)
  let digest: string | undefined

  function take(chunk: Buffer): void {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    let from = 0
    for (let at = bytes.indexOf(boundary); at !== -1; at = bytes.indexOf(boundary, from)) {
      hash.update(bytes.subarray(from, at)).update('\0')
      from = at + boundary.length
    }
    // The end may be the beginning of the next one.
    const upTo = Math.max(from, bytes.length - boundary.length + 1)
    hash.update(bytes.subarray(from, upTo))
    rest = Buffer.from(bytes.subarray(upTo))
  }

  // Whoever listened earlier would set it flowing, before there is a reader.
  raw.on('newListener', function begin(event: string) {
    if (event !== 'data') return
    raw.off('newListener', begin)
    raw.on('data', take)
  })

  return {
    digest() {
      if (!raw.readableEnded) return undefined
      digest ??= hash.update(rest).digest('hex')
      return digest
    },
    async read(most) {
      let length = 0
      raw.on('data', (chunk: Buffer) => {
        length += chunk.length
        if (length > most) raw.destroy()
      })
      await finished(raw, { writable: false }).catch(() => undefined) // what is not complete has no digest
    },
  }
}
