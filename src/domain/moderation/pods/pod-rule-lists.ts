import { type PodRule, readPodRules } from '../../../persistence/moderation/pod-rules.js'
import type { Services } from '../../../services/services.js'
import { type Actor, requirePower } from '../actor.js'
import { nameOfRule } from './rule-domain.js'

const SEVERITIES = { blocked: 'suspend', limited: 'silence' } as const

/** The rules that restrict pods, as a domain block list of Mastodon (RFC 4180). */
export async function exportPodRules({ db }: Pick<Services, 'db'>, actor: Actor): Promise<string> {
  requirePower(actor, 'moderation')
  const rules = await readPodRules(db, ['blocked', 'limited'])
  const header = '#domain,#severity,#reject_media,#reject_reports,#public_comment,#obfuscate'
  return [header, ...rules.map(lineOf)].map((line) => `${line}\r\n`).join('')
}

function lineOf(rule: PodRule): string {
  const { state, rejectMedia, rejectReports, publicComment, obfuscate } = rule
  const severity = state === 'normal' ? 'noop' : SEVERITIES[state]
  return [nameOfRule(rule), severity, rejectMedia, rejectReports, publicComment, obfuscate]
    .map(String)
    .map(quote)
    .join(',')
}

function quote(cell: string): string {
  return /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell
}
