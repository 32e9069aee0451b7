// npm run dev: builds after every change, and restarts the pod after every successful build.
import { spawn } from 'node:child_process'
import { existsSync, watch } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const WATCHED = ['src', 'workers', 'migrations', 'bin', 'embedded-postgres', 'tsconfig.json']
/** Time without changes before a build, because an editor or a checkout changes several files at once. */
const QUIET_MS = 100

let pod
let builder
let hasChangedDuringBuild = false
let isRestartWanted = false
let isStopping = false
let buildTimer

// The watch mode of the compiler does not work on some file systems and in some containers.
const watchers = WATCHED.map((name) => join(root, name))
  .filter(existsSync)
  .map((path) => watch(path, { recursive: true }, scheduleBuild))
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, stop)
build()

function scheduleBuild() {
  clearTimeout(buildTimer)
  if (!isStopping) buildTimer = setTimeout(build, QUIET_MS)
}

function build() {
  hasChangedDuringBuild = builder !== undefined
  if (hasChangedDuringBuild) return
  builder = start(['scripts/ensure-installed.mjs'])
  builder.once('exit', (code) => {
    builder = undefined
    if (isStopping) return
    if (hasChangedDuringBuild) build()
    else if (code === 0) restart()
  })
}

/** Stops the running pod first, because both would use the same port and database. */
function restart() {
  if (pod === undefined) return startPod()
  isRestartWanted = true
  pod.kill('SIGTERM')
}

function startPod() {
  isRestartWanted = false
  pod = start(['--enable-source-maps', 'dist/bin/pod.js', 'start', ...process.argv.slice(2)])
  pod.once('exit', (code) => {
    pod = undefined
    if (isStopping) return
    if (isRestartWanted) startPod()
    else console.log(`The pod ended (${code ?? 'killed'}); it starts again after the next change.`)
  })
}

function stop() {
  isStopping = true
  clearTimeout(buildTimer)
  for (const watcher of watchers) watcher.close()
  for (const child of [builder, pod]) child?.kill('SIGTERM')
}

/** Starts a process in a separate group, so that only this script forwards Ctrl-C to it. */
function start(args) {
  return spawn(process.execPath, args, { cwd: root, stdio: 'inherit', detached: true })
}
