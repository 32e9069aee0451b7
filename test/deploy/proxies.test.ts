import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { request as requestHttp } from 'node:http'
import { type RequestOptions, request } from 'node:https'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RECEIVE_LIMITS } from '../../src/jobs/inbound/limits.js'
import { freePort } from '../support/http/free-port.js'
import { type EchoUpstream, startEchoUpstream } from './echo-upstream.js'
import { findProgram } from './find-program.js'

const run = promisify(execFile)
const HOST = 'pod.example'
/** The default of PHOTO_BYTES, and what a form adds to it. */
const UPLOAD_BYTES = 10 * 2 ** 20 + 64 * 2 ** 10

interface Proxy {
  readonly https: number
  readonly http: number
  /** Everything in its access log. */
  readLog(): Promise<string>
  close(): Promise<void>
}

async function readDeployFile(name: string): Promise<string> {
  return readFile(new URL(`../../deploy/${name}`, import.meta.url), 'utf8')
}

async function startNginx(program: string, folder: string, upstream: number): Promise<Proxy> {
  const [http, https] = [await freePort(), await freePort()]
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')]
  await run('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1'],
    ...['-subj', `/CN=${HOST}`, '-keyout', key, '-out', certificate],
  ])
  const site = (await readDeployFile('nginx.conf'))
    .replace(/^ {4}listen \[::\].*\n/gm, '')
    .replace('listen 80;', `listen 127.0.0.1:${http};`)
    .replace('listen 443 ssl', `listen 127.0.0.1:${https} ssl`)
    .replace('127.0.0.1:3000', `127.0.0.1:${upstream}`)
    .replace(/\/etc\/letsencrypt\/\S+fullchain.pem/, certificate)
    .replace(/\/etc\/letsencrypt\/\S+privkey.pem/, key)
    .replace('/var/cache/nginx/pod', join(folder, 'cache'))
    .replace('/var/log/nginx/pod.log', join(folder, 'access.log'))
  const bodies = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  await writeFile(
    join(folder, 'nginx.conf'),
    // As root it would run its workers as a user that may not enter this folder.
    `${process.getuid?.() === 0 ? 'user root;' : ''} daemon off; pid ${folder}/nginx.pid; error_log ${folder}/error.log; worker_processes 1;
     events { worker_connections 256; }
     http { ${bodies.map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')} ${site} }`,
  )
  const start = [...['-p', folder], ...['-c', join(folder, 'nginx.conf')], ...['-e', join(folder, 'error.log')]]
  await run(program, ['-t', ...start])
  const child = spawn(program, start, { stdio: 'ignore' })
  await waitForPort(https)
  return {
    ...{ http, https },
    readLog: () => readFile(join(folder, 'access.log'), 'utf8'),
    close: () => endProcess(child, 'SIGQUIT'),
  }
}

async function startCaddy(program: string, folder: string, upstream: number): Promise<Proxy> {
  const [http, https] = [await freePort(), await freePort()]
  await mkdir(join(folder, 'home'))
  const site = (await readDeployFile('Caddyfile'))
    .replace(
      '{\n\tservers',
      `{\n\tadmin off\n\tskip_install_trust\n\tlocal_certs\n\thttp_port ${http}\n\thttps_port ${https}\n\tservers`,
    )
    .replace('log {', `log {\n\t\toutput file ${join(folder, 'access.log')}`)
  await writeFile(join(folder, 'Caddyfile'), site)
  const environment = {
    ...process.env,
    HOME: join(folder, 'home'),
    XDG_DATA_HOME: join(folder, 'home'),
    XDG_CONFIG_HOME: join(folder, 'home'),
    POD_HOST: HOST,
    POD_UPSTREAMS: `127.0.0.1:${upstream}`,
  }
  const config = ['--adapter', 'caddyfile', '--config', join(folder, 'Caddyfile')]
  await run(program, ['validate', ...config], { env: environment })
  const child = spawn(program, ['run', ...config], { stdio: 'ignore', env: environment })
  await waitForPort(https)
  return {
    ...{ http, https },
    readLog: () => readFile(join(folder, 'access.log'), 'utf8'),
    close: () => endProcess(child, 'SIGTERM'),
  }
}

async function endProcess(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill(signal)
  await ended
}

async function waitForPort(port: number): Promise<void> {
  for (;;) {
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1')
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
      socket.once('connect', () => socket.destroy())
    })
    if (isOpen) return
  }
}

interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}

function askProxy(proxy: Proxy, path: string, options: RequestOptions = {}, body?: Buffer): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { headers, ...others } = options
    const sent = request(
      {
        ...{ host: '127.0.0.1', port: proxy.https, servername: HOST, path, rejectUnauthorized: false, agent: false },
        ...others,
        headers: { host: HOST, ...headers },
      },
      (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk
        })
        response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }))
      },
    )
    sent.on('error', reject)
    sent.end(body)
  })
}

const proxies = [
  { name: 'nginx', program: await findProgram('nginx'), start: startNginx },
  { name: 'Caddy', program: await findProgram('caddy'), start: startCaddy },
]

describe.each(proxies.filter(({ program }) => program !== undefined))('$name', ({ program = '', start }) => {
  let folder: string
  let upstream: EchoUpstream
  let proxy: Proxy
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'proxy-'))
    upstream = await startEchoUpstream()
    proxy = await start(program, folder, upstream.port)
    // Caddy makes its certificate after it listens.
    for (;;) {
      const answer = await askProxy(proxy, '/').catch(() => undefined)
      if (answer?.status === 200) break
    }
  }, 60_000)
  afterAll(async () => {
    await proxy.close()
    await upstream.close()
    await rm(folder, { recursive: true })
  })

  it('passes the host, the scheme and the address of the connection, not what the client claims', async () => {
    const { body } = await askProxy(proxy, '/users/sign_in', {
      headers: { 'x-forwarded-for': '192.0.2.1', 'x-forwarded-proto': 'http' },
    })

    expect(JSON.parse(body).headers).toMatchObject({
      host: HOST,
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'https',
    })
  })

  it('leads from http to https', async () => {
    const location = await new Promise((resolve, reject) => {
      requestHttp(
        { host: '127.0.0.1', port: proxy.http, path: '/people/1?a=b', headers: { host: HOST } },
        (response) => {
          response.resume()
          resolve([response.statusCode, response.headers.location])
        },
      )
        .on('error', reject)
        .end()
    })

    expect(location).toEqual([
      expect.toBeOneOf([301, 308]),
      expect.stringMatching(/^https:\/\/pod\.example(:\d+)?\/people\/1\?a=b$/),
    ])
  })

  it('keeps the path as it was sent', async () => {
    const { body } = await askProxy(proxy, '/api/v1/tag_followings/a%2Fb%20c//d')

    expect(JSON.parse(body).url).toBe('/api/v1/tag_followings/a%2Fb%20c//d')
  })

  it.each([
    ['the largest picture', UPLOAD_BYTES],
    ['the largest message of another pod', RECEIVE_LIMITS.bodyBytes],
  ])('accepts %s', async (_name, bytes) => {
    const { status, body } = await askProxy(proxy, '/receive/users/x', { method: 'POST' }, Buffer.alloc(bytes, 'a'))

    expect({ status, bytes: JSON.parse(body).bytes }).toEqual({ status: 200, bytes })
  })

  it('sends each event of a stream at once', async () => {
    const texts: string[] = []
    const [stream, response] = await new Promise<[ReturnType<typeof request>, NodeJS.ReadableStream]>(
      (resolve, reject) => {
        const sent = request(
          {
            ...{ host: '127.0.0.1', port: proxy.https, servername: HOST, rejectUnauthorized: false, agent: false },
            path: '/api/v1/streaming',
            headers: { host: HOST, 'accept-encoding': 'gzip' },
          },
          (response) => resolve([sent, response]),
        )
        sent.on('error', reject)
        sent.end()
      },
    )
    const chunks = response.on('data', (chunk: Buffer) => void texts.push(chunk.toString()))
    while (!texts.join('').includes(': open')) await once(chunks, 'data')
    upstream.sendEvent('first')
    while (!texts.join('').includes('data: first')) await once(chunks, 'data')
    stream.destroy()
  })

  it('sends a failed write to no second web process', async () => {
    upstream.answerWith(503)
    const before = upstream.requests.length
    const { status } = await askProxy(proxy, '/api/v1/posts', { method: 'POST' }, Buffer.from('{}'))
    upstream.answerWith(200)

    expect({ status, requests: upstream.requests.length - before }).toEqual({ status: 503, requests: 1 })
  })

  it('shows no metrics', async () => {
    const before = upstream.requests.length

    expect((await askProxy(proxy, '/metrics')).status).toBe(404)
    expect(upstream.requests.length).toBe(before)
  })

  it('writes no token into its log', async () => {
    await askProxy(proxy, '/api/v1/user?access_token=secret-in-query', {
      headers: {
        authorization: 'Bearer secret-in-header',
        cookie: '_session=secret-in-cookie',
        referer: 'https://x/?secret-referer',
      },
    })
    let log = ''
    while (!log.includes('/api/v1/user')) log = await proxy.readLog().catch(() => '')

    expect(log).not.toContain('secret-')
  })
})
