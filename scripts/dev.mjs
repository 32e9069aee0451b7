// npm run dev: builds on every change and starts the pod again when there is something new to run.
import { spawn } from 'node:child_process'
import { existsSync, watch } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const WATCHED = ['src', 'workers', 'migrations', 'bin', 'embedded-postgres', 'tsconfig.json']
/** An editor that saves, or a checkout, changes several files at once. */
const CALM_MS = 100

let pod
let builder
let changedSince = false
let restartWanted = false
let stopping = false
let calm

// The watch mode of the compiler sees nothing on some file systems and in some containers, so we watch ourselves.
const watchers = WATCHED.map((name) => join(root, name))
  .filter(existsSync)
  .map((path) => watch(path, { recursive: true }, changed))
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, stop)
build()

function changed() {
  clearTimeout(calm)
  if (!stopping) calm = setTimeout(build, CALM_MS)
}

function build() {
  changedSince = builder !== undefined
  if (changedSince) return
  builder = start(['scripts/ensure-installed.mjs'])
  builder.once('exit', (code) => {
    builder = undefined
    if (stopping) return
    if (changedSince) build()
    else if (code === 0) restart()
  })
}

/** The old one has to be gone first: they share a port and a database. */
function restart() {
  if (pod === undefined) return startPod()
  restartWanted = true
  pod.kill('SIGTERM')
}

function startPod() {
  restartWanted = false
  pod = start(['--enable-source-maps', 'dist/bin/pod.js', 'start', ...process.argv.slice(2)])
  pod.once('exit', (code) => {
    pod = undefined
    if (stopping) return
    if (restartWanted) startPod()
    else console.log(`The pod ended (${code ?? 'killed'}); it starts again after the next change.`)
  })
}

function stop() {
  stopping = true
  clearTimeout(calm)
  for (const watcher of watchers) watcher.close()
  for (const child of [builder, pod]) child?.kill('SIGTERM')
}

/** In a group of its own, so that Ctrl-C reaches it once: from here. */
function start(args) {
  return spawn(process.execPath, args, { cwd: root, stdio: 'inherit', detached: true })
}
