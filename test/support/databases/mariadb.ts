import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type Connection, createConnection } from 'mysql2/promise'
import { memoryFolder } from '../files/memory-folder.js'

/** A MariaDB server with one database. */
export interface MariadbServer extends AsyncDisposable {
  readonly url: string
  /** A session that may write, and accepts invalid dates. */
  readonly session: Connection
}

/** Starts a server in a new folder. Every user has all privileges. */
export async function startMariadb(program: string): Promise<MariadbServer> {
  const folder = await mkdtemp(join(memoryFolder(), 'pod-mariadb-'))
  const port = await freePort()
  const child = spawn(
    program,
    [
      ...['--no-defaults', '--user=root', `--datadir=${folder}`, '--skip-grant-tables'],
      ...[`--port=${port}`, '--bind-address=127.0.0.1', `--socket=${join(folder, 's.sock')}`],
      `--pid-file=${join(folder, 'pid')}`,
      ...['--innodb-flush-log-at-trx-commit=0', '--innodb-buffer-pool-size=32M', '--innodb-log-file-size=16M'],
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  const exited = once(child, 'exit')
  const lines: string[] = []
  for await (const line of createInterface({ input: child.stderr })) {
    lines.push(line)
    if (line.includes('ready for connections')) break
  }
  child.stderr.resume()
  if (child.exitCode !== null) throw new Error(`MariaDB did not start: ${lines.join('\n')}`)
  const session = await createConnection({ host: '127.0.0.1', port, user: 'root', charset: 'utf8mb4_bin' })
  await session.query(`create database diaspora character set utf8mb4 collate utf8mb4_bin`)
  await session.query('use diaspora')
  await session.query(`set session sql_mode = 'ANSI_QUOTES', time_zone = '+00:00'`)
  return {
    url: `mysql://reader:secret@127.0.0.1:${port}/diaspora`,
    session,
    async [Symbol.asyncDispose]() {
      session.destroy()
      child.kill('SIGTERM')
      await exited
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('There is no free port.')
  return address.port
}
