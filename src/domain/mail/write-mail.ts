import { escapeHtml } from '../../protocol/escape-html.js'
import { firstCharacters, isWithinLength } from '../../protocol/values.js'
import { MAIL_LIMITS } from './limits.js'
import type { MailText } from './mail-texts.js'

/** The parts of a mail with its links. */
export interface MailParts {
  readonly text: MailText
  /** Lines between the paragraphs and the link. */
  readonly lines?: readonly string[]
  readonly url?: string | undefined
  readonly footer: string
  readonly unsubscribe?: { readonly label: string; readonly url: string } | undefined
}

export interface WrittenMail {
  readonly subject: string
  readonly text: string
  readonly html: string
}

/** Writes the text and the HTML part. The HTML part loads nothing. */
export function writeMail({ text, lines = [], url, footer, unsubscribe }: MailParts): WrittenMail {
  const { subject, paragraphs, action } = text
  const plain = [
    ...paragraphs,
    ...(lines.length === 0 ? [] : [lines.map((line) => `- ${line}`).join('\n')]),
    ...(url === undefined ? [] : [`${action ?? ''}:\n${url}`]),
    `-- \n${footer}${unsubscribe === undefined ? '' : `\n${unsubscribe.label}: ${unsubscribe.url}`}`,
  ]
  const markup = [
    ...paragraphs.map((paragraph) => `<p>${escapeHtml(paragraph)}</p>`),
    ...(lines.length === 0 ? [] : [`<ul>${lines.map((line) => `<li>${escapeHtml(line)}</li>`).join('')}</ul>`]),
    ...(url === undefined ? [] : [`<p><a href="${escapeHtml(url)}">${escapeHtml(action ?? url)}</a></p>`]),
    `<hr><p><small>${escapeHtml(footer)}${unsubscribe === undefined ? '' : ` <a href="${escapeHtml(unsubscribe.url)}">${escapeHtml(unsubscribe.label)}</a>`}</small></p>`,
  ]
  return {
    subject: oneLine(subject),
    text: `${plain.join('\n\n')}\n`,
    html: `<!doctype html><html><head><meta charset="utf-8"><title>${escapeHtml(subject)}</title></head><body>${markup.join('\n')}</body></html>\n`,
  }
}

/** The name of another person, without line breaks, control characters and changes of direction. */
export function mailName(name: string): string {
  return firstCharacters(oneLine(name.replace(/\p{Cf}/gu, '')), MAIL_LIMITS.nameCharacters)
}

/** The beginning of a public text, without marks. Only a part of it is read: the patterns take quadratic time for `![![![…`. */
export function mailExcerpt(text: string): string | undefined {
  const { readCharacters } = MAIL_LIMITS
  const plain = oneLine(
    text
      .slice(0, readCharacters)
      .replace(/[\ud800-\udbff]$/, '')
      .replace(/@\{(?:([^;{}]*);)?\s*([^{}]+)\}/g, (_, name: string | undefined, address: string) =>
        (name ?? address).trim(),
      )
      .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
      .replace(/[*_`>#~]+/g, ''),
  )
  if (plain === '') return undefined
  const { excerptCharacters } = MAIL_LIMITS
  const isComplete = text.length <= readCharacters && isWithinLength(plain, excerptCharacters)
  return isComplete ? plain : `${firstCharacters(plain, excerptCharacters - 1)}…`
}

function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ').trim()
}
