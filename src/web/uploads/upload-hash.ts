import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { finished } from 'node:stream/promises'

/** The hash of the parts of a multipart body. */
export interface UploadHash {
  /** Undefined: the body was not read completely. */
  digest(): string | undefined
  /** Reads the body for the hash alone. A client that sends more than `maxBytes` bytes is disconnected. */
  read(maxBytes: number): Promise<void>
}

/** Hashes a body while another reader consumes it. The boundary, which clients choose for each request, is left out. */
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
    // The end of the chunk may be the beginning of a boundary.
    const upTo = Math.max(from, bytes.length - boundary.length + 1)
    hash.update(bytes.subarray(from, upTo))
    rest = Buffer.from(bytes.subarray(upTo))
  }

  // Adds its listener together with that of the reader: an earlier one would start the flow and lose data.
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
    async read(maxBytes) {
      let length = 0
      raw.on('data', (chunk: Buffer) => {
        length += chunk.length
        if (length > maxBytes) raw.destroy()
      })
      await finished(raw, { writable: false }).catch(() => undefined) // an incomplete body has no digest
    },
  }
}
