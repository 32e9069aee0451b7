import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { photoHandlers } from '../../../workers/handlers/photos.js'
import type { RunningWorkers } from '../../../workers/start-workers.js'
import { startTestWorkers } from '../queues/test-workers.js'
import type { ApiClient, ApiResponse } from './api-pod.js'
import type { PodOptions } from './build-pod.js'
import { type SampleApiPod, startSampleApiPod } from './sample-api-pod.js'

/** A field of a form: a text, or the bytes of a file. */
export interface FormPart {
  readonly name: string
  readonly value: string | Buffer
  readonly fileName?: string
  readonly type?: string
}

/** The client API with sample data, a folder for uploads, and a worker that processes photos. */
export interface PhotoPod extends SampleApiPod {
  /** Uploads a file in the form of the known client. */
  upload(client: Pick<ApiClient, 'token'>, picture: Buffer, query?: string): Promise<ApiResponse>
  /** Posts any form. */
  post(client: Partial<Pick<ApiClient, 'token'>>, parts: readonly FormPart[], query?: string): Promise<ApiResponse>
  /** Stored files: public images, and spooled files that are not yet or no longer published. */
  files(): Promise<{ readonly images: readonly string[]; readonly spool: readonly string[] }>
  startWorkers(): RunningWorkers
  readonly uploadsDir: string
}

export async function startPhotoPod(options: PodOptions = {}): Promise<PhotoPod> {
  const uploadsDir = await mkdtemp(join(tmpdir(), 'pod-photos-'))
  const environment = { ...options.environment, UPLOADS_DIR: uploadsDir }
  const api = await startSampleApiPod({ ...options, environment })
  const running: RunningWorkers[] = []

  function startWorkers(): RunningWorkers {
    const workers = startTestWorkers(api.pod, { handlers: { photos: photoHandlers }, queues: ['photos'] })
    running.push(workers)
    return workers
  }
  const list = (folder: string) => readdir(join(uploadsDir, folder)).catch(() => [])
  async function post(
    client: Partial<Pick<ApiClient, 'token'>>,
    parts: readonly FormPart[],
    query = '',
  ): Promise<ApiResponse> {
    const { body, type } = formOf(parts)
    return api.call({
      method: 'POST',
      path: `/photos${query}`,
      ...(client.token !== undefined && { token: client.token }),
      body,
      headers: { 'content-type': type },
    })
  }
  async function close(): Promise<void> {
    await Promise.all(running.map((workers) => workers.close()))
    await api.close()
    await rm(uploadsDir, { recursive: true })
  }

  return {
    ...api,
    uploadsDir,
    post,
    upload: (client, picture, query) => post(client, [pictureField(picture)], query),
    files: async () => ({ images: (await list('images')).toSorted(), spool: await list('spool') }),
    startWorkers,
    close,
    [Symbol.asyncDispose]: close,
  }
}

export function pictureField(value: Buffer): FormPart {
  return { name: 'image', value, fileName: 'IMG_0001', type: 'application/octet-stream' }
}

/** The multipart body of a form. */
export function formOf(parts: readonly FormPart[], boundary = 'a-boundary-in-between'): { body: Buffer; type: string } {
  const chunks = parts.flatMap(({ name, value, fileName, type }) => [
    Buffer.from(
      [
        `--${boundary}`,
        `Content-Disposition: form-data; name="${name}"${fileName === undefined ? '' : `; filename="${fileName}"`}`,
        ...(type === undefined ? [] : [`Content-Type: ${type}`]),
        '',
        '',
      ].join('\r\n'),
    ),
    Buffer.from(value),
    Buffer.from('\r\n'),
  ])
  return {
    body: Buffer.concat([...chunks, Buffer.from(`--${boundary}--\r\n`)]),
    type: `multipart/form-data; boundary=${boundary}`,
  }
}
