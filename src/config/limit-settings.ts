import type { Environment } from './variables.js'

export function importLimits(variables: Environment) {
  return {
    imports: variables.IMPORTS,
    importBytes: variables.IMPORT_BYTES,
    importPhotoBytes: variables.IMPORT_PHOTO_BYTES,
    importTotalBytes: variables.IMPORT_TOTAL_BYTES,
  }
}

export function spamThresholds(variables: Environment) {
  return {
    spamClusterItems: variables.SPAM_CLUSTER_ITEMS,
    spamClusterAuthors: variables.SPAM_CLUSTER_AUTHORS,
    spamAuthorItems: variables.SPAM_AUTHOR_ITEMS,
    spamAuthorThreads: variables.SPAM_AUTHOR_THREADS,
    spamConversations: variables.SPAM_CONVERSATIONS,
    spamAutoHide: variables.SPAM_AUTO_HIDE === 'on',
  }
}

export function requestLimits(variables: Environment) {
  return {
    addressLimits: {
      signIns: variables.SIGN_IN_LIMIT,
      clients: variables.CLIENT_LIMIT,
      tokens: variables.TOKEN_LIMIT,
      authorizations: variables.AUTHORIZATION_LIMIT,
      pages: variables.PAGE_LIMIT,
    },
    writeLimit: variables.WRITE_LIMIT,
  }
}

export function retentionOf(variables: Environment) {
  return {
    posts: variables.RETENTION_POSTS_DAYS,
    withComments: variables.RETENTION_WITH_COMMENTS === 'on',
    notifications: variables.RETENTION_NOTIFICATIONS_DAYS,
    dead: variables.RETENTION_DEAD_DAYS,
    tombstones: variables.RETENTION_TOMBSTONES_DAYS,
  }
}
