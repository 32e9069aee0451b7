/** A request that succeeds, for the API description. Guids and ids stand for those of a real pod. */
export interface OperationExample {
  readonly path?: Readonly<Record<string, string | number>>
  readonly query?: Readonly<Record<string, string | boolean>>
  readonly body?: object
}

/** The objects that the examples name. `test/api/examples.test.ts` creates a pod that has them. */
export const EXAMPLE = {
  ownGuid: '0a1b2c3d4e5f60718293a4b5c6d7e8f9',
  contactGuid: '99887766554433221100ffeeddccbbaa',
  personGuid: '5d41402abc4b2a76b9719d911017c592',
  postGuid: '6f1d2c4be0a94f3d8c5b7a9012345678',
  ownPostGuid: '7e2f3d5cf1ba504e9d6c8b0123456789',
  commentGuid: '1c9a44d0b7e3485f92d6a1e05b7c3f28',
  photoGuid: '3b5d7f9a1c2e4068a0b2c4d6e8f01234',
  conversationGuid: 'c0ffee00d1e2f3a4b5c6d7e8f9012345',
  messageGuid: 'd1a5b0c3e7f94286a1b3c5d7e9f02468',
  notificationGuid: 'ab12cd34ef56ab78cd90ef12ab34cd56',
  exportId: 'e8f70123456789abcdef0123456789ab',
  importId: 'f90123456789abcdef0123456789abcd',
  aspectId: 1,
  otherAspectId: 2,
  pollAnswerId: 1,
  tag: 'introduction',
} as const

const ofPost = { path: { post_guid: EXAMPLE.postGuid } }
const ofComment = { path: { post_guid: EXAMPLE.postGuid, comment_guid: EXAMPLE.commentGuid } }
const ofContact = { path: { person_guid: EXAMPLE.contactGuid } }
const ofPerson = { path: { person_guid: EXAMPLE.personGuid } }
const ofConversation = { path: { guid: EXAMPLE.conversationGuid } }
const ofNotification = { path: { notification_id: EXAMPLE.notificationGuid } }
const ofPhoto = { path: { photo_guid: EXAMPLE.photoGuid } }
const ofExport = { path: { export_id: EXAMPLE.exportId } }
const ofAspect = { path: { id: EXAMPLE.aspectId } }
const inAspect = { path: { aspect_id: EXAMPLE.aspectId } }

/** Examples by `operationId`, in an order in which all of them succeed one after the other on one pod. */
export const OPERATION_EXAMPLES: Readonly<Record<string, OperationExample>> = {
  getOwnProfile: {},
  changeOwnProfile: { body: { bio: 'I like **cats**.', location: 'Berlin', tags: ['cats', 'hiking'] } },

  getSettings: {},
  changeSettings: { body: { time_zone: 'Europe/Berlin', mail_kinds: { liked: 'never' } } },

  getPerson: ofContact,
  listPostsOfPerson: ofContact,
  listPhotosOfPerson: ofContact,
  blockPerson: ofPerson,
  unblockPerson: ofPerson,
  listBlocks: {},

  listAspects: {},
  createAspect: { body: { name: 'Hiking group' } },
  getAspect: ofAspect,
  changeAspect: { ...ofAspect, body: { name: 'Close friends' } },
  changeAspectWithPut: { ...ofAspect, body: { name: 'Closest friends', order: 1 } },
  listContactsInAspect: inAspect,
  addContactToAspect: { ...inAspect, body: { person_guid: EXAMPLE.personGuid } },
  removeContactFromAspect: { path: { ...inAspect.path, person_guid: EXAMPLE.personGuid } },
  listContacts: { path: { person_guid: EXAMPLE.ownGuid } },

  createPost: { body: { body: 'Hello, this is my first post. #introduction', public: true } },
  getPost: ofPost,
  listPostDeliveries: { path: { post_guid: EXAMPLE.ownPostGuid } },

  mutePost: ofPost,
  subscribeToPost: ofPost,
  hidePost: { ...ofPost, body: { hide: true } },
  voteInPoll: { ...ofPost, body: { poll_answer: EXAMPLE.pollAnswerId } },
  listOwnReports: {},
  listUserNotices: {},
  reportPerson: { ...ofPerson, body: { reason: 'This account sends advertising.' } },
  reportMessage: {
    path: { guid: EXAMPLE.conversationGuid, message_guid: EXAMPLE.messageGuid },
    body: { reason: 'This message is a threat.' },
  },
  reportPost: { ...ofPost, body: { reason: 'This post is advertising.' } },

  likePost: ofPost,
  listLikesOfPost: ofPost,
  unlikePost: ofPost,
  createReshare: ofPost,
  listReshares: ofPost,

  createComment: { ...ofPost, body: { body: 'Welcome!' } },
  listComments: ofPost,
  reportComment: { ...ofComment, body: { reason: 'This comment is an insult.' } },
  likeComment: ofComment,
  listLikesOfComment: ofComment,
  unlikeComment: ofComment,
  deleteComment: ofComment,

  uploadPhoto: { query: { pending: true } },
  listOwnPhotos: {},
  getPhoto: ofPhoto,
  changePhoto: { ...ofPhoto, body: { alt_text: 'A cat asleep on a bookshelf.' } },
  deletePhoto: ofPhoto,

  createExport: { body: { kind: 'copy' } },
  listExports: {},
  getExport: ofExport,
  getExportFile: ofExport,
  deleteExport: ofExport,
  listImports: {},
  getImport: { path: { import_id: EXAMPLE.importId } },

  startConversation: {
    body: { subject: 'Lunch on Friday?', body: 'Noon at the main square?', recipients: [EXAMPLE.contactGuid] },
  },
  listConversations: {},
  getConversation: ofConversation,
  writeMessage: { ...ofConversation, body: { body: 'See you there.' } },
  listMessages: ofConversation,
  markConversation: { ...ofConversation, body: { read: true } },
  markConversationWithPut: { ...ofConversation, body: { read: false } },
  leaveConversation: ofConversation,

  listNotifications: {},
  openNotification: ofNotification,
  markNotification: { ...ofNotification, body: { read: true } },
  markNotificationWithPut: { ...ofNotification, body: { read: false } },

  followTag: { body: { name: EXAMPLE.tag } },
  listTagFollowings: {},
  unfollowTag: { path: { name: EXAMPLE.tag } },

  getMainStream: {},
  getActivityStream: {},
  getMentionsStream: {},
  getTagsStream: {},
  getLikedStream: {},
  getCommentedStream: {},
  getAspectsStream: {},

  searchPeople: { query: { name_or_handle: 'bob' } },
  searchPosts: { query: { tag: EXAMPLE.tag } },
  searchTags: { query: { query: 'intro' } },

  listen: {},

  deletePost: { path: { post_guid: EXAMPLE.ownPostGuid } },
  deleteAspect: { path: { id: EXAMPLE.otherAspectId } },
}
