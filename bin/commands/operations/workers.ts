import type { Command } from 'commander'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { listRunningProcesses } from '../../../src/domain/operations/machine.js'
import { presentProcess } from '../../../src/web/presenters/operations.js'
import { type OutputOptions, print, printable, table } from '../../output.js'
import { withPod } from '../../with-pod.js'

export function processCommands(program: Command): void {
  program
    .command('workers')
    .description('Lists the processes of the pod with a heartbeat in the last 30 seconds.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod workers')
    .action(list)
}

async function list(options: OutputOptions): Promise<void> {
  const processes = await withPod((services) => listRunningProcesses(services, COMMAND_ACTOR))
  const rows = processes.map(({ kind, host, pid, version, startedAt, facts }) => [
    kind,
    `${host} ${pid}`,
    version,
    startedAt.toISOString(),
    `${Math.round(facts.rssBytes / 1_048_576)} MB`,
    `${facts.busyPercent} %`,
    String(facts.jobs.length),
    facts.queues.join(', '),
  ])
  print(options, processes.map(presentProcess), [
    ...table([['kind', 'process', 'version', 'started', 'memory', 'busy', 'jobs', 'queues'], ...rows]).map(printable),
    processes.length === 1 ? '1 process' : `${processes.length} processes`,
  ])
}
