import type { Command } from 'commander'
import { Post } from '../../src/persistence/models/post.js'
import {
  type DeliveryReport,
  findDeliveryReports,
  type MissingDelivery,
} from '../../src/persistence/outbound/delivery-report.js'
import { formatAddressHost } from '../../src/protocol/address.js'
import { presentDeliveryReport } from '../../src/web/presenters/deliveries.js'
import { CommandError } from '../command-error.js'
import { type OutputOptions, print, printable, table } from '../output.js'
import { withPod } from '../with-pod.js'

export function deliveryCommands(program: Command): void {
  program
    .command('post <guid>')
    .description('Shows the deliveries of a local post by pod: delivered, waiting, or refused with the reason.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod post 7dba7ca01d64013485eb3131731751e9')
    .action(reportPost)
}

async function reportPost(guid: string, options: OutputOptions): Promise<void> {
  const { author, reports } = await withPod(async ({ db }) => {
    const post = await Post.query(db).findOne({ guid }).withGraphFetched('author')
    return { author: post?.author?.address, reports: await findDeliveryReports(db, 'post', guid) }
  })
  if (author === undefined && reports.length === 0) throw new CommandError(`There is no post ${guid}.`)
  print(
    options,
    { guid, author: author ?? null, messages: reports.map(presentDeliveryReport) },
    describe(reports).map(printable),
  )
}

function describe(reports: readonly DeliveryReport[]): string[] {
  if (reports.length === 0)
    return ['There is no message about it. Messages that have arrived are deleted after 14 days.']
  return reports.flatMap((report) => {
    const missingInState = (state: MissingDelivery['state']) =>
      report.missing.filter((delivery) => delivery.state === state)
    const [waiting, dead] = [missingInState('waiting'), missingInState('dead')]
    return [
      `${report.verb}, ${report.writtenAt.toISOString()}: ${report.arrived} of ${report.sentTo} arrived, ${waiting.length} waiting, ${dead.length} given up`,
      ...table(report.missing.map(line)).map((text) => `  ${text}`),
      ...table(report.arrivedAt.map((delivery) => ['arrived', formatAddressHost(delivery), delivery.at])).map(indent),
      ...table(report.skipped.map((delivery) => ['left out', formatAddressHost(delivery), delivery.reason])).map(
        indent,
      ),
    ]
  })
}

function indent(text: string): string {
  return `  ${text}`
}

function line(delivery: MissingDelivery): string[] {
  const { state, attempts, nextTryAt, fault, status } = delivery
  return [
    state === 'dead' ? 'given up' : 'waiting',
    targetOf(delivery),
    attempts === 1 ? '1 attempt' : `${attempts} attempts`,
    fault === null ? '-' : `${fault}${status === null ? '' : ` (${status})`}`,
    nextTryAt === null ? '' : `again at ${new Date(nextTryAt).toISOString()}`,
  ]
}

function targetOf({ host, port, person }: MissingDelivery): string {
  return person ?? formatAddressHost({ host, port })
}
