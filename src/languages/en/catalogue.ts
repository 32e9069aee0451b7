import { ACCOUNTS } from './accounts.js'
import { IMPORTS } from './imports.js'
import { MAILS } from './mails.js'
import { PAGES } from './pages.js'
import { SETTINGS } from './settings.js'
import { COMMON } from './shared-messages.js'

/** All messages in English. Their ids and arguments are those of every language. */
export const ENGLISH = { ...COMMON, ...ACCOUNTS, ...SETTINGS, ...PAGES, ...IMPORTS, ...MAILS } as const
