import type { FastifyReply, FastifyRequest } from 'fastify'
import { hasPower } from '../../domain/accounts/role-powers.js'
import { OIDC_PATHS } from '../oidc/paths.js'
import { ICON_PATH } from '../pages/html.js'
import { html, type Markup, trustMarkup } from '../pages/markup.js'
import { queryText } from '../schemas/query-text.js'
import { stripQuery } from '../server/paths.js'
import { CONSOLE_POLICY, CONSOLE_STYLE } from './console-style.js'
import { findFlashMessage } from './flash-messages.js'
import { CONSOLE_SECTIONS, type ConsoleSection } from './paths.js'
import { writeTimesInZone } from './quantities.js'

export interface ConsolePage {
  /** Title with the count or state that the page is about. */
  readonly title: string
  /** Only content: the heading of the first level is written from the title. */
  readonly content: Markup
  readonly status?: number
}

/** Sends a page of the console in its frame: skip link, navigation, heading and the flash message of the previous action. */
export function sendConsolePage(
  request: FastifyRequest,
  reply: FastifyReply,
  { title, content, status = 200 }: ConsolePage,
): FastifyReply {
  const { podName } = request.services.config
  const { staff, formToken } = request.console
  const flash = findFlashMessage(queryText(request, 'flash'))
  const groups = ['Moderation', 'Operation'] as const
  const sections = CONSOLE_SECTIONS.filter(({ power }) => hasPower(staff.role, power))
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title} · ${podName}</title>
<link rel="icon" href="${ICON_PATH}">
<style>${trustMarkup(CONSOLE_STYLE)}</style>
</head>
<body class="console">
<a class="skip" href="#content">Skip to the content</a>
<header class="bar"><a class="home" href="/"><img src="${ICON_PATH}" alt="" width="24" height="24"><bdi>${podName}</bdi></a>
<form method="post" action="${OIDC_PATHS.signOut}"><input type="hidden" name="form" value="${formToken.page}"><span class="small"><bdi>${staff.username}</bdi>, ${staff.role}</span>
<button class="quiet">Sign out</button></form></header>
<nav class="sections" aria-label="Console">
${groups.map((group) => groupOf(group, sections, stripQuery(request.url)))}</nav>
<main id="content" tabindex="-1">
<h1>${title}</h1>
${flash === undefined ? '' : html`<p class="notice" role="status">${flash}</p>\n`}${content}
</main>
</body>
</html>
`
  return reply
    .code(status)
    .type('text/html; charset=utf-8')
    .header('content-security-policy', CONSOLE_POLICY)
    .header('x-robots-tag', 'noindex')
    .send(writeTimesInZone(page.text, staff.timeZone))
}

function groupOf(group: ConsoleSection['group'], sections: readonly ConsoleSection[], path: string): Markup | '' {
  const sectionsOfGroup = sections.filter((section) => section.group === group)
  if (sectionsOfGroup.length === 0) return ''
  return html`<div><p>${group}</p><ul aria-label="${group}">${sectionsOfGroup.map(
    ({ path: target, label }) =>
      html`<li><a href="${target}"${isCurrent(target, path) && html` aria-current="page"`}>${label}</a></li>`,
  )}</ul></div>\n`
}

function isCurrent(section: string, path: string): boolean {
  return path === section || (section !== '/admin' && path.startsWith(`${section}/`))
}
