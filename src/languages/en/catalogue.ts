import { ACCOUNTS } from './accounts.js'
import { COMMON } from './common.js'
import { MAILS } from './mails.js'
import { PAGES } from './pages.js'
import { SETTINGS } from './settings.js'

/** All messages in English. Their ids and arguments are those of every language. */
export const ENGLISH = { ...COMMON, ...ACCOUNTS, ...SETTINGS, ...PAGES, ...MAILS } as const
