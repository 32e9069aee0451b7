import type { Catalogue } from '../translate.js'
import { ACCOUNTS } from './accounts.js'
import { COMMON } from './common.js'
import { MAILS } from './mails.js'
import { PAGES } from './pages.js'
import { SETTINGS } from './settings.js'

export const FRENCH = { ...COMMON, ...ACCOUNTS, ...SETTINGS, ...PAGES, ...MAILS } as const satisfies Catalogue
