import { type ChildProcess, execFile, type SpawnOptions, spawn } from 'node:child_process'
import { readFile, stat } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Binaries, programPath } from './binaries.js'

interface User {
  readonly uid: number
  readonly gid: number
}

/** PostgreSQL refuses to run as root, and needs a user with a name. */
export type RunAs =
  | { readonly kind: 'myself' }
  | (User & { readonly kind: 'user' })
  /** A user namespace: the process has another user id, while files keep the real owner. */
  | (User & { readonly kind: 'namespace' })

/** The server gets no other environment: no secrets, no `PG…` settings. */
const ENVIRONMENT = { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', LC_ALL: 'C', TZ: 'UTC' }
const PROBE_LIMIT_MS = 10_000

export function isRoot(): boolean {
  return process.geteuid?.() === 0
}

/** The first candidate with which PostgreSQL runs and reaches `home`; otherwise the last failure. */
export async function chooseRunAs(binaries: Binaries, home: string): Promise<RunAs | { readonly failure: unknown }> {
  let failure: unknown
  for (const candidate of isRoot() ? await candidatesOfRoot(home) : await candidatesOfUser()) {
    try {
      await run(candidate, programPath(binaries, 'postgres'), ['--version'])
      if (candidate.kind !== 'myself') await run(candidate, 'test', ['-x', home])
      return candidate
    } catch (error) {
      failure = error
    }
  }
  return { failure }
}

/** The required owner of the database files; undefined: the current user. */
export function ownerFor(runAs: RunAs): User | undefined {
  if (runAs.kind === 'myself') return undefined
  return runAs.kind === 'user' ? runAs : { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 }
}

export async function run(
  runAs: RunAs,
  program: string,
  args: readonly string[],
  timeout = PROBE_LIMIT_MS,
): Promise<void> {
  const command = commandFor(runAs, program, args)
  await promisify(execFile)(command.program, command.args, { ...command.options, timeout })
}

export function spawnAs(runAs: RunAs, program: string, args: readonly string[], options: SpawnOptions): ChildProcess {
  const command = commandFor(runAs, program, args)
  return spawn(command.program, command.args, { ...options, ...command.options })
}

function commandFor(runAs: RunAs, program: string, args: readonly string[]) {
  const options = { env: ENVIRONMENT, cwd: '/' }
  if (runAs.kind === 'myself') return { program, args, options }
  const { uid, gid } = runAs
  if (runAs.kind === 'user') return { program, args, options: { ...options, uid, gid } }
  return { program: 'unshare', args: ['-U', `--map-user=${uid}`, `--map-group=${gid}`, program, ...args], options }
}

async function candidatesOfRoot(home: string): Promise<readonly RunAs[]> {
  const users = [await ownerOf(join(home, 'postgres')), ...(await systemUsers('postgres', 'nobody'))]
  const definedUsers = users.filter((user) => user !== undefined)
  const inNamespace = definedUsers.slice(-1)
  return [
    ...definedUsers.map((user) => ({ kind: 'user', ...user }) as const),
    ...inNamespace.map((user) => ({ kind: 'namespace', ...user }) as const),
  ]
}

/** Lists the users as whom the server may run. The user of a container may have no entry in /etc/passwd. */
async function candidatesOfUser(): Promise<readonly RunAs[]> {
  const myself = { kind: 'myself' } as const
  if (hasName()) return [myself]
  const inNamespace = (await systemUsers('nobody')).map((user) => ({ kind: 'namespace', ...user }) as const)
  return [...inNamespace, myself]
}

function hasName(): boolean {
  try {
    return userInfo().username !== ''
  } catch {
    return false
  }
}

/** The previous owner of the database, unless that was root in a namespace. */
async function ownerOf(cluster: string): Promise<User | undefined> {
  const owner = await stat(cluster).catch(() => undefined)
  return owner === undefined || owner.uid === 0 ? undefined : { uid: owner.uid, gid: owner.gid }
}

async function systemUsers(...names: readonly string[]): Promise<readonly User[]> {
  const lines = (await readFile('/etc/passwd', 'utf8').catch(() => '')).split('\n').map((line) => line.split(':'))
  return names.flatMap((name) => {
    const [, , uid, gid] = lines.find((line) => line[0] === name) ?? []
    return uid === undefined || gid === undefined ? [] : [{ uid: Number(uid), gid: Number(gid) }]
  })
}
