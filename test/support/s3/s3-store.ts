import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import S3rver from '@20minutes/s3rver'
import { openS3Client, type S3Client, type S3Settings } from '../../../src/persistence/s3/s3-client.js'
import { memoryFolder } from '../files/memory-folder.js'

/** An S3-compatible store with one bucket. */
export interface S3Store extends AsyncDisposable {
  /** Settings of a pod that stores pictures there. */
  readonly environment: NodeJS.ProcessEnv
  /** Endpoint and keys, for another bucket or prefix. */
  readonly settings: Omit<S3Settings, 'bucket' | 'prefix'>
  /** A client of the bucket. */
  readonly client: S3Client
  /** The methods of all requests since the last call. */
  takeRequests(): readonly string[]
  /** Sends a status to the next requests, or breaks their connections. Undefined: normal responses. Default: all requests. */
  fail(failure: number | 'break' | undefined, requests?: number): void
  close(): Promise<void>
}

/** The only keys that the test server knows. */
const KEY = 'S3RVER'
const BUCKET = 'pictures'

export async function startS3Store(): Promise<S3Store> {
  const directory = await mkdtemp(join(memoryFolder(), 'pod-s3-test-'))
  const program = new S3rver({ silent: true, directory, vhostBuckets: false, configureBuckets: [{ name: BUCKET }] })
  await program.configureBuckets()
  const respond = program.callback()
  let requests: string[] = []
  let failure: number | 'break' | undefined
  let failures = Number.POSITIVE_INFINITY
  const server = createServer((request, response) => {
    requests.push(request.method ?? '')
    failures -= 1
    if (failures < 0) failure = undefined
    if (failure === 'break') request.socket.destroy()
    else if (failure === undefined) respond(request, response)
    else response.writeHead(failure).end()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const close = async () => {
    server.closeAllConnections()
    server.close()
    await rm(directory, { recursive: true, force: true })
  }
  const settings = { endpoint, region: 'us-east-1', isPathStyle: true, accessKeyId: KEY, secretAccessKey: KEY }
  return {
    settings,
    environment: {
      STORAGE: 's3',
      S3_ENDPOINT: endpoint,
      S3_BUCKET: BUCKET,
      S3_PREFIX: 'pod/',
      S3_ACCESS_KEY_ID: KEY,
      S3_SECRET_ACCESS_KEY: KEY,
    },
    client: openS3Client({ ...settings, bucket: BUCKET, prefix: 'pod/' }),
    takeRequests() {
      const methods = requests
      requests = []
      return methods
    },
    fail(status, requests = Number.POSITIVE_INFINITY) {
      failure = status
      failures = requests
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}
