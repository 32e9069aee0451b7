import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { type RequestOptions, request } from 'node:https'
import { connect } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePort } from '../support/http/free-port.js'

const run = promisify(execFile)
const HOST = 'pod.example'
/** Connections of one address, which a test can open. */
export const NGINX_CONNECTIONS = 10

/** A running proxy with an example of the folder `deploy`, changed only in addresses, paths and the number of connections. */
export interface RunningProxy {
  readonly https: number
  readonly http: number
  /** Everything in its access log. */
  readLog(): Promise<string>
  /** Everything in its log of errors. */
  readErrorLog(): Promise<string>
  close(): Promise<void>
}

export async function readDeployFile(name: string): Promise<string> {
  return readFile(new URL(`../../deploy/${name}`, import.meta.url), 'utf8')
}

export async function startNginx(
  program: string,
  folder: string,
  ...upstreams: readonly number[]
): Promise<RunningProxy> {
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
    .replace(/^ +server 127\.0\.0\.1:3000( .*)\n/m, (_, options) =>
      upstreams.map((port) => `server 127.0.0.1:${port}${options}\n`).join(''),
    )
    .replace(/\/etc\/letsencrypt\/\S+fullchain.pem/, certificate)
    .replace(/\/etc\/letsencrypt\/\S+privkey.pem/, key)
    .replace('limit_conn pod_connections 200;', `limit_conn pod_connections ${NGINX_CONNECTIONS};`)
    .replace('/var/cache/nginx/pod', join(folder, 'cache'))
    .replace('/var/log/nginx/pod.log', join(folder, 'access.log'))
    .replace('/var/log/nginx/pod-error.log', join(folder, 'pod-error.log'))
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
    async readErrorLog() {
      const files = ['error.log', 'pod-error.log'].map((name) => readFile(join(folder, name), 'utf8').catch(() => ''))
      return (await Promise.all(files)).join('')
    },
    close: () => endProcess(child, 'SIGQUIT'),
  }
}

export async function startCaddy(
  program: string,
  folder: string,
  ...upstreams: readonly number[]
): Promise<RunningProxy> {
  const [http, https] = [await freePort(), await freePort()]
  await mkdir(join(folder, 'home'))
  const site = (await readDeployFile('Caddyfile'))
    .replace(
      '{\n\tservers',
      `{\n\tadmin off\n\tskip_install_trust\n\tlocal_certs\n\thttp_port ${http}\n\thttps_port ${https}\n\tservers`,
    )
    // The log of the site, not that of errors in the global options.
    .replace(/(?<=\{\$POD_HOST[\s\S]*)log \{/, `log {\n\t\toutput file ${join(folder, 'access.log')}`)
  await writeFile(join(folder, 'Caddyfile'), site)
  const environment = {
    ...process.env,
    HOME: join(folder, 'home'),
    XDG_DATA_HOME: join(folder, 'home'),
    XDG_CONFIG_HOME: join(folder, 'home'),
    POD_HOST: HOST,
    POD_UPSTREAMS: upstreams.map((port) => `127.0.0.1:${port}`).join(' '),
  }
  const config = ['--adapter', 'caddyfile', '--config', join(folder, 'Caddyfile')]
  await run(program, ['validate', ...config], { env: environment })
  const child = spawn(program, ['run', ...config], { stdio: ['ignore', 'ignore', 'pipe'], env: environment })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text
  })
  await waitForPort(https)
  return {
    ...{ http, https },
    readLog: () => readFile(join(folder, 'access.log'), 'utf8'),
    readErrorLog: async () => errors,
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

export interface ProxyAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}

export function askProxy(
  proxy: RunningProxy,
  path: string,
  options: RequestOptions = {},
  body?: Buffer,
): Promise<ProxyAnswer> {
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
