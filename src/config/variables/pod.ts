import { folder, httpAddress, onOff, setting, text } from '../schemas.js'

export const POD_VARIABLES = {
  POD_URL: setting(
    text('the public http or https address of the pod'),
    'The public address. It is part of every identity and cannot be changed later',
    { whenNotSet: '`http://localhost:PORT`', example: 'https://pod.example' },
  ),
  POD_NAME: setting(
    { type: 'string', maxLength: 255, default: '', description: 'a text of at most 255 characters' },
    'Name shown to users and other pods',
    { whenNotSet: 'the host of `POD_URL`', example: 'My pod' },
  ),
  DEFAULT_LANGUAGE: setting(
    {
      type: 'string',
      default: 'en',
      pattern: '^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$',
      description: 'the code of a language, like en or de',
    },
    "Language of pages if none of the browser's languages is available: `en`, `de`, `fr`, `es`, or a language of `LOCALES_DIR`",
  ),
  LOCALES_DIR: setting(
    folder,
    'A folder with a file `<language>.json` for each language to add or change: an object of message ids (`src/languages/en`) and texts in ICU MessageFormat. Missing messages keep the built-in text; the pod refuses to start if a file is invalid',
    { example: 'locales' },
  ),
  PODMIN_ACCOUNT: setting(
    { type: 'string', maxLength: 255, description: 'a name of at most 255 characters' },
    'The local account used to subscribe to comments on remote posts (it signs the participations)',
    { whenNotSet: '`pod-account`, which belongs to no person', example: 'alice' },
  ),
  SOURCE_URL: setting(
    httpAddress,
    'Where the source code of the running version is. The AGPL requires this link on a pod whose program was changed: pages show it at their foot, and NodeInfo has it',
    { example: 'https://code.example/pod' },
  ),
  STATISTICS: setting(onOff('off'), '`on`: publish the numbers of users, posts and comments in NodeInfo'),
  DATA_DIR: setting(
    { type: 'string', minLength: 1, default: 'var', description: 'the path of a folder' },
    'Directory of the embedded database, the secret key and, by default, pictures',
  ),
  SECRET_KEY: setting(
    { type: 'string', minLength: 32, maxLength: 1024, description: 'a text of at least 32 characters' },
    'At least 32 characters, the same for all processes. Encrypts private keys in the database',
    { whenNotSet: 'generated once, in `DATA_DIR`' },
  ),
  OIDC_ISSUER: setting(
    {
      type: 'string',
      pattern: '^https?://[^?#\\s]+$',
      description: 'the issuer of ID tokens, an http or https address',
    },
    'For a pod that was taken over: the issuer of ID tokens, exactly as applications know it (`https://pod.example/`)',
    { whenNotSet: 'the address of the pod', example: 'https://pod.example/' },
  ),
  USERNAME_BLACKLIST: setting(
    {
      type: 'string',
      default:
        'admin,administrator,hostmaster,info,postmaster,root,ssl-admin,ssladmin,ssladministrator,sslwebmaster,sysadmin,webmaster',
      description: 'names, separated by commas',
    },
    'Reserved usernames, separated by commas. Replaces the built-in list',
    { whenNotSet: '`admin`, `root` and others', example: 'admin,root,webmaster' },
  ),
} as const
